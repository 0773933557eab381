import CLibrary
import Posix

/// The modification time of a merged directory that a program has set through a mount.
///
/// A merged directory has the latest time of its parts, so an earlier one that is set would not show. Therefore the topmost
/// part gets an extended attribute with the latest time of the parts below at that moment: up to that, theirs do not count.
/// A part below that changes later does.
enum DirectoryTimeMark {
  /// The second one is for processes without `CAP_SYS_ADMIN`.
  static let names: [StaticString] = ["trusted.bundlefs.mtime", "user.bundlefs.mtime"]
  /// Seconds and nanoseconds.
  static let size = 12

  static func value(of time: TimeSpec) -> [UInt8] {
    withUnsafeBytes(of: Int64(time.seconds).littleEndian) { Array($0) }
      + withUnsafeBytes(of: UInt32(time.nanoseconds).littleEndian) { Array($0) }
  }

  static func time(in value: UnsafeRawBufferPointer) -> TimeSpec? {
    guard value.count == size else { return nil }
    return TimeSpec(
      seconds: Int64(littleEndian: value.loadUnaligned(as: Int64.self)),
      nanoseconds: UInt32(littleEndian: value.loadUnaligned(fromByteOffset: 8, as: UInt32.self)))
  }
}

extension LayerDirectory {
  /// Whether a time of the parts below does not count.
  func supersedes(_ time: TimeSpec) throws(Errno) -> Bool {
    for name in DirectoryTimeMark.names {
      if let mark = try timeMark(name.cName) { return time <= mark }
    }
    return false
  }

  private func timeMark(_ name: CName) throws(Errno) -> TimeSpec? {
    do throws(Errno) {
      return try withUnsafeTemporaryBytes(DirectoryTimeMark.size) { buffer throws(Errno) in
        let count = try extendedAttribute(name, into: buffer)
        return DirectoryTimeMark.time(in: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      }
    } catch {
      if [.noData, .notSupported, .outOfRange, .notPermitted, .permissionDenied].contains(error) {
        return nil
      }
      throw error
    }
  }

  /// Has times of the parts below up to this one not count. A file system without extended attributes keeps nothing.
  fileprivate func supersede(_ time: TimeSpec) throws(Errno) {
    for name in DirectoryTimeMark.names {
      do throws(Errno) {
        return try DirectoryTimeMark.value(of: time).withBytes { value throws(Errno) in
          try setExtendedAttribute(name.cName, value, flags: 0)
        }
      } catch {
        if error != .notPermitted && error != .notSupported { throw error }
      }
    }
  }
}

extension MergedDirectory {
  /// Sets attributes of the topmost part, so that they show.
  /// - Throws: errors of chown(2), chmod(2), utimensat(2) and setxattr(2).
  public func change(_ changes: AttributeChanges) throws(Errno) {
    if let modified = changes.modified, let latest = latestBelow {
      let time = if case .at(let time) = modified { time } else { TimeSpec.now }
      // Before it is set: what shows in between has been there.
      if time < latest { try top.supersede(latest) }
    }
    try top.change(changes)
  }

  /// Gives the topmost part the time that the mount shows, which can be that of a part below.
  public func keepShownTime() throws(Errno) {
    if isAlone { return }
    let shown = try attributes().modified
    guard shown != (try top.attributes().modified) else { return }
    try top.withDescriptor { top throws(Errno) in try top.setTimes(accessed: nil, modified: .at(shown)) }
  }

  /// The latest time of the parts below the topmost one, as far as they answer; nil without any.
  private var latestBelow: TimeSpec? {
    parts.dropFirst().filter { !$0.gate.isBypassed && !$0.gate.isSkipped }
      .compactMap { (try? $0.attributes())?.modified }.max()
  }
}
