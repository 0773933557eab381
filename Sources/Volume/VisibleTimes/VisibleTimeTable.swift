/// Which version each name has shown last, and from when on: the rules of `-o mtime=visible`.
///
/// A name shows another version when another file has it, or when the file's own time or size is another one. The shown
/// time never goes back then, and is never the one of the version before, unless a program has set it.
struct VisibleTimeTable {
  /// The most names. Beyond it, those go first that show their own time.
  static let mostNames = 1 << 18
  /// The most entries of each of the other tables, which are emptied beyond it.
  private static let most = 1 << 16
  /// Nanoseconds before it became visible within which a file counts as written at that moment.
  private static let tick: Int64 = 20_000_000

  private(set) var records: [UInt64: VisibleTimeRecord] = [:]
  /// By `FileVersion.shared`, the latest moment at which one of a file's names has begun to show it.
  private var files: [UInt64: Int64] = [:]
  /// By `FileVersion.shared`, the states whose time a program has set.
  private var setStates: [UInt64: UInt64] = [:]
  /// By the `FileVersion.file` of a copy that the mount itself has made, the same of what it is a copy of.
  private var copies: [UInt64: UInt64] = [:]
  /// The other way round.
  private var latestCopies: [UInt64: UInt64] = [:]
  /// When names may have begun to show something else.
  private var moments: [UInt64: Moment] = [:]

  private struct Moment {
    /// In nanoseconds since the epoch.
    let time: Int64
    /// Whether a file's content may have been changed in place.
    let isContent: Bool
  }

  /// What is to be shown, and the record to be kept if it is another one than before.
  typealias Answer = (since: Int64, changed: VisibleTimeRecord?)

  // MARK: - What is shown

  /// A name has been looked up.
  /// - Parameter now: nanoseconds since the epoch.
  mutating func look(_ key: UInt64, _ version: FileVersion, now: Int64) -> Answer {
    let moment = takeMoment(of: key, now)
    guard let former = records[key] else {
      return keep(VisibleTimeRecord(key: key, version, since: files[version.shared] ?? 0), version)
    }
    if isSame(former, version) { return follow(former, version, moment) }
    let isFresh = version.modified > former.shown && version.modified >= moment.time - Self.tick
    let since = isFresh ? 0 : Self.time(of: moment.time, after: former.shown)
    return keep(VisibleTimeRecord(key: key, version, since: since), version)
  }

  /// A file that is known, perhaps by a name that has another one by now, has been asked for its attributes.
  mutating func stat(_ key: UInt64?, _ version: FileVersion, now: Int64) -> Answer {
    guard let key, let former = records[key], isSame(former, version) else {
      return (files[version.shared] ?? 0, nil)
    }
    return follow(former, version, takeMoment(of: key, now))
  }

  private mutating func takeMoment(of key: UInt64, _ now: Int64) -> Moment {
    let moment = moments.isEmpty ? nil : moments.removeValue(forKey: key)
    return Moment(time: min(moment?.time ?? now, now), isContent: moment?.isContent == true)
  }

  private func isSame(_ record: VisibleTimeRecord, _ version: FileVersion) -> Bool {
    record.file == version.file || (!copies.isEmpty && copies[version.file] == record.file)
  }

  /// The name still has the same file, which may have been changed.
  private mutating func follow(
    _ former: VisibleTimeRecord, _ version: FileVersion, _ moment: Moment
  ) -> Answer {
    // Another thread has read the attributes later, and has been here before.
    if former.file == version.file, version.changed < former.changed { return (former.since, nil) }
    let isSet = setStates[version.shared] == version.state
    // It was written to, and its time and size are the same: the change time tells whether since it was shown.
    let isRewritten = moment.isContent && former.changed != 0 && version.changed > former.changed
    if isSet || (former.state == version.state && !isRewritten) {
      let since = max(former.since, files[version.shared] ?? 0)
      return keep(
        VisibleTimeRecord(key: former.key, version, since: since, isSet: former.isSet || isSet), version)
    }
    // Its own time was set back in a layer, or two changes fell into one tick of the file system's clock.
    let isBehind = version.modified <= former.shown && !former.isSet
    let since = isBehind ? Self.time(of: moment.time, after: former.shown) : former.since
    return keep(VisibleTimeRecord(key: former.key, version, since: since), version)
  }

  /// - Parameter shown: the time before. One that exceeds the range, in the year 2262 or later, does not count.
  fileprivate static func time(of moment: Int64, after shown: Int64) -> Int64 {
    shown == .max ? moment : max(moment, shown + 1)
  }

  private mutating func keep(_ record: VisibleTimeRecord, _ version: FileVersion) -> Answer {
    if record.since > 0 { Self.insert(record.since, for: version.shared, into: &files) }
    let former = records[record.key]
    if former == record { return (record.since, nil) }
    if former == nil { makeRoom() }
    records[record.key] = record
    return (record.since, former?.isKept(as: record) == true ? nil : record)
  }

  private static func insert<Value>(
    _ value: Value, for key: UInt64, into entries: inout [UInt64: Value]
  ) {
    if entries.count >= most { entries.removeAll(keepingCapacity: true) }
    entries[key] = value
  }

  private mutating func makeRoom() {
    guard records.count >= Self.mostNames else { return }
    // Those that show their own time, of which any may go, are last.
    let kept = records.values.sorted { $0.since > $1.since }.prefix(Self.mostNames / 2)
    records = Dictionary(uniqueKeysWithValues: kept.map { ($0.key, $0) })
  }

  // MARK: - What happens

  /// A name may have begun to show something else.
  /// - Parameter isContent: whether a file's content may have been changed in place.
  mutating func mark(_ key: UInt64, at time: Int64, isContent: Bool = false) {
    if records[key] == nil { return }
    let moment = Moment(time: time, isContent: isContent || moments[key]?.isContent == true)
    Self.insert(moment, for: key, into: &moments)
  }

  /// A program has set a file's time through the mount.
  mutating func set(_ key: UInt64?, _ version: FileVersion) -> VisibleTimeRecord? {
    files[version.shared] = nil
    Self.insert(version.state, for: version.shared, into: &setStates)
    guard let key, records[key].map({ isSame($0, version) }) ?? true else { return nil }
    return keep(VisibleTimeRecord(key: key, version, since: 0, isSet: true), version).changed
  }

  /// The mount itself makes a copy of a file, which takes its place.
  /// - Returns: the record to be kept: the next mount finds the copy. If this process is killed before the copy has its place, the
  ///   next mount takes the original for another version.
  mutating func copy(of original: FileVersion, is copy: UInt64, at key: UInt64?) -> VisibleTimeRecord? {
    // A copy of a copy, of which nothing was asked, is still the first one's.
    let first = copies[original.file] ?? original.file
    Self.insert(first, for: copy, into: &copies)
    Self.insert(copy, for: first, into: &latestCopies)
    if let since = files[original.shared] { Self.insert(since, for: copy, into: &files) }
    guard let key, let record = records[key], isSame(record, original) else { return nil }
    return asCopy(record)
  }

  private func asCopy(_ record: VisibleTimeRecord) -> VisibleTimeRecord {
    var record = record
    record.file = latestCopies[record.file] ?? record.file
    return record
  }

  /// The mount itself has moved a name. The file keeps its time, unless the other name's would go back to it.
  /// - Returns: the records to be kept.
  mutating func move(
    _ source: UInt64, to target: UInt64, isExchange: Bool, now: Int64
  ) -> [VisibleTimeRecord] {
    let (moved, replaced) = (records[source], records[target])
    var changed = [replace(target, by: moved?.replacing(replaced, now: now))]
    if isExchange { changed.append(replace(source, by: replaced?.replacing(moved, now: now))) }
    // A file that was copied to be renamed.
    return changed.compactMap { $0.map(asCopy) }
  }

  private mutating func replace(_ key: UInt64, by record: VisibleTimeRecord?) -> VisibleTimeRecord? {
    moments[key] = nil
    if record == nil, records[key] == nil { return nil }
    records[key] = record
    records[key]?.key = key
    // Where the kernel knows the file by another of its names.
    if let record, record.since > 0 { Self.insert(record.since, for: record.file, into: &files) }
    return records[key] ?? VisibleTimeRecord(unknown: key)
  }

  // MARK: - Records of a former mount

  /// Adds a record, which replaces an earlier one of the name.
  mutating func load(_ record: VisibleTimeRecord) {
    if record.file == 0 {
      records[record.key] = nil
    } else {
      if records[record.key] == nil { makeRoom() }
      records[record.key] = record
    }
  }
}

extension VisibleTimeRecord {
  /// The record of a file that takes another one's name through the mount. A time that a program has set stays.
  fileprivate func replacing(_ former: VisibleTimeRecord?, now: Int64) -> VisibleTimeRecord {
    guard let former, !isSet, (file, state) != (former.file, former.state), shown <= former.shown else {
      return self
    }
    var record = self
    record.since = VisibleTimeTable.time(of: now, after: former.shown)
    record.shown = record.since
    return record
  }
}
