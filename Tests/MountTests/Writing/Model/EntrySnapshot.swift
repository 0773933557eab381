import Glibc
import Posix
import TestSupport

/// What can be seen of an entry, and must be the same in two trees.
struct EntrySnapshot: Equatable {
  private var fields: [String: String] = [:]

  /// - Parameters:
  ///   - start: when the operations began; later times are compared as "recent" only.
  ///   - hasTime: whether the time of a directory is compared.
  static func take(_ path: ByteString, since start: TimeSpec, hasTime: Bool) throws -> EntrySnapshot {
    var snapshot = EntrySnapshot()
    let status: StatResult
    do { status = try path.status() } catch let error as DiskError {
      snapshot.fields["lstat"] = error.errno.description
      return snapshot
    }
    snapshot.record(status)
    // The kernel records no writes to a FIFO in a FUSE mount.
    if status.kind == .directory ? hasTime : status.kind != .fifo {
      snapshot.fields["mtime"] = isRecent(status.modified, start) ? "recent" : "\(status.modified)"
    }
    try snapshot.recordAttributes(path)
    switch status.kind {
    case .regular: snapshot.recordContent(try path.read())
    case .symbolicLink: snapshot.fields["target"] = try path.linkTarget().description
    case .directory: snapshot.fields["names"] = "\(try names(path))"
    default: ()
    }
    return snapshot
  }

  /// A directory and everything in it, with exact times.
  static func all(below directory: ByteString) throws -> [ByteString: EntrySnapshot] {
    let never = TimeSpec(seconds: .max, nanoseconds: 0)
    var all = [directory: try take(directory, since: never, hasTime: true)]
    guard try directory.status().kind == .directory else { return all }
    for name in try directory.names() { all.merge(try Self.all(below: directory / name)) { $1 } }
    return all
  }

  private mutating func record(_ status: StatResult) {
    fields["kind"] = status.kind.map { "\($0)" } ?? "unknown"
    fields["mode"] = String(status.permissions, radix: 8)
    fields["owner"] = "\(status.owner):\(status.group)"
    fields["device"] = "\(status.rdev)"
    if status.kind == .directory { return }
    fields["size"] = "\(status.size)"
    fields["links"] = "\(status.links)"
  }

  /// Leaves out the number of hard links.
  mutating func removeLinks() { fields["links"] = nil }

  /// The kernel's clock for files is behind by up to a tick.
  private static func isRecent(_ time: TimeSpec, _ start: TimeSpec) -> Bool {
    time.seconds >= start.seconds - 1 && time <= TimeSpec.now
  }

  private mutating func recordAttributes(_ path: ByteString) throws {
    for name in try path.attributeNames() where Self.isCompared(name) {
      fields["xattr \(name)"] = "\(try path.attribute(name))"
    }
  }

  private static func isCompared(_ name: ByteString) -> Bool {
    if name.hasPrefix("system.") { return true }
    return name.hasPrefix("user.") && !name.hasPrefix("user.overlay.")
  }

  private mutating func recordContent(_ content: [UInt8]) {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in content { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    fields["content"] = "\(content.count) bytes, hash \(hash)"
  }

  /// Those that can be looked up: the kernel's overlayfs lists whiteouts of directories that are not merged.
  private static func names(_ path: ByteString) throws -> [ByteString] {
    try path.names().filter { (path / $0).exists }
  }

  /// The fields in which it differs from what is expected.
  func differences(from expected: EntrySnapshot, at path: ByteString) -> [String] {
    Set(fields.keys).union(expected.fields.keys).sorted().compactMap { field in
      let (seen, wanted) = (fields[field] ?? "none", expected.fields[field] ?? "none")
      return seen == wanted ? nil : "\(path): \(field): expected \(wanted), seen \(seen)"
    }
  }
}

/// Compares a tree with another that must be the same.
struct SameTree {
  /// The tree that is as it must be.
  let expected: ByteString
  let seen: ByteString
  /// When the operations began.
  let start: TimeSpec
  /// Whether the time of a directory is that of one layer.
  var hasTime: (ByteString) -> Bool = { _ in true }
  var comparesLinks = true

  /// The differences of an entry, without what is in a directory.
  func differences(at path: ByteString) throws -> [String] {
    let hasTime = self.hasTime(path)
    var wanted = try EntrySnapshot.take(expected / path, since: start, hasTime: hasTime)
    var found = try EntrySnapshot.take(seen / path, since: start, hasTime: hasTime)
    if !comparesLinks {
      wanted.removeLinks()
      found.removeLinks()
    }
    return found.differences(from: wanted, at: path.count == 0 ? "/" : path)
  }

  /// The differences of an entry and everything below it.
  func allDifferences(below path: ByteString = "") -> [String] {
    do {
      var differences = try self.differences(at: path)
      guard try (expected / path).status().kind == .directory else { return differences }
      for name in try (expected / path).names() { differences += allDifferences(below: path / name) }
      return differences
    } catch {
      return ["\(path): \(error)"]
    }
  }
}
