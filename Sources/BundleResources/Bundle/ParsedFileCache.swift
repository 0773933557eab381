import Bundles
import Containers
import Layers
import Posix

/// Caches what was parsed of files, by their paths. An entry is valid while the file's identity, size and times are
/// the same.
final class ParsedFileCache<Value: Sendable>: Sendable {
  private struct Version: Equatable {
    let identity: FileIdentity
    let size: UInt64
    let modified: TimeSpec
    let changed: TimeSpec

    init(_ attributes: FileStatus) {
      (identity, size) = (attributes.identity, attributes.size)
      (modified, changed) = (attributes.modified, attributes.changed)
    }

    /// Whether a further change would alter the times. Their granularity may be as coarse as two seconds.
    var isStable: Bool { max(modified, changed).seconds < TimeSpec.now.seconds - 2 }
  }

  private struct Entry {
    /// nil for a file that may change without other times.
    let version: Version?
    let value: Value
  }

  private let entries = Locked<[[UInt8]: Entry]>([:])
  /// Bounds the memory for a program that asks for ever new tables.
  private let limit = 1024

  func removeAll() { entries.withLock { $0.removeAll() } }

  /// The value of a file.
  /// - Parameters:
  ///   - isKept: whether a value may be cached; what could not be read may be readable again.
  ///   - make: parses the file.
  func value(
    of file: ResourceVersion, at path: [UInt8], isKept: (Value) -> Bool = { _ in true },
    make: (ResourceVersion) -> Value
  ) -> Value {
    let version = Version(file.attributes)
    let known = entries.withLock { $0[path] }
    if let known, known.version == version { return known.value }
    let value = make(file)
    if !isKept(value) { return value }
    entries.withLock { entries in
      if entries.count >= limit { entries.removeAll() }
      entries[path] = Entry(version: version.isStable ? version : nil, value: value)
    }
    return value
  }
}
