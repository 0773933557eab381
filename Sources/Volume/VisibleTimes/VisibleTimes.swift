import Posix

/// The modification times of `-o mtime=visible`: of each file the later one of its own and the moment when this version
/// became the visible one.
public final class VisibleTimes: Sendable {
  private struct State {
    var table = VisibleTimeTable()
    /// nil while nothing outlives the mount.
    var log: VisibleTimeLog?
  }
  private let state = Locked(State())
  /// Tells the user why records are not kept from now on.
  private let report: @Sendable (VisibleTimeLog.Fault) -> Void

  /// Times that are kept until the mount ends.
  public init() { report = { _ in } }

  /// Times that a file keeps.
  /// - Parameters:
  ///   - name: of the file in its folder.
  ///   - temporary: the name of a file that is about to replace it.
  ///   - isSuccessor: whether a predecessor of the same mount may have it open.
  ///   - report: is passed why the file is not used any more.
  /// - Throws: why it cannot be used.
  public init(
    keptIn name: [UInt8], in folder: SharedDescriptor, temporary: [UInt8], isSuccessor: Bool,
    report: @escaping @Sendable (VisibleTimeLog.Fault) -> Void
  ) throws(VisibleTimeLog.Fault) {
    self.report = report
    var loaded = State()
    var log = try VisibleTimeLog(
      name, in: folder, temporary: temporary, isSuccessor: isSuccessor)
    _ = try log.load(into: &loaded.table)
    loaded.log = log
    let first = loaded
    state.withLock { $0 = first }
  }

  private static var now: Int64 { TimeSpec.now.clampedNanoseconds }

  /// - Returns: what `NodeAttributes.earliestTime` is for the file that a look-up of a name has found.
  func look(_ key: UInt64?, _ version: FileVersion) -> TimeSpec? {
    guard let key else { return stat(nil, version) }
    return answer { $0.look(key, version, now: Self.now) }
  }

  /// The same for a file that is known already.
  /// - Parameter key: of the name by which it was looked up last; nil if it has lost it.
  func stat(_ key: UInt64?, _ version: FileVersion) -> TimeSpec? {
    answer { $0.stat(key, version, now: Self.now) }
  }

  private func answer(_ body: (inout VisibleTimeTable) -> VisibleTimeTable.Answer) -> TimeSpec? {
    let since = change { table in
      let answer = body(&table)
      return (answer.since, answer.changed.map { [$0] } ?? [])
    }
    return since > 0 ? TimeSpec(nanosecondsSinceEpoch: since) : nil
  }

  /// Records that a name may have begun to show something else.
  /// - Parameter isContent: whether a file's content may have been changed in place.
  func mark(_ key: UInt64, isContent: Bool) {
    state.withLock { $0.table.mark(key, at: Self.now, isContent: isContent) }
  }

  /// Records that a program has set a file's time through the mount.
  func set(_ key: UInt64?, _ version: FileVersion) {
    change { table in ((), table.set(key, version).map { [$0] } ?? []) }
  }

  /// Records that the mount is about to put a copy in a file's place.
  func copy(of original: FileVersion, is copy: FileIdentity, at key: UInt64?) {
    change { table in
      ((), table.copy(of: original, is: copy.lastingHash, at: key).map { [$0] } ?? [])
    }
  }

  /// Records that the mount has moved a name.
  func move(_ source: UInt64, to target: UInt64, isExchange: Bool = false) {
    change { table in ((), table.move(source, to: target, isExchange: isExchange, now: Self.now)) }
  }

  private func change<Result>(
    _ body: (inout VisibleTimeTable) -> (Result, [VisibleTimeRecord])
  ) -> Result {
    let (result, fault) = state.withLock { state -> (Result, VisibleTimeLog.Fault?) in
      let (result, changed) = body(&state.table)
      if changed.isEmpty || state.log == nil { return (result, nil) }
      do throws(VisibleTimeLog.Fault) {
        try state.log?.append(changed, of: state.table.records)
        return (result, nil)
      } catch {
        state.log = nil
        return (result, error)
      }
    }
    if let fault { report(fault) }
    return result
  }
}
