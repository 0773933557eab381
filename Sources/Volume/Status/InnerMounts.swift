import Posix

/// The mounts inside a mount where case does not count. The kernel has mounted each on one spelling of its path; the
/// others lead to what lies beneath.
struct InnerMounts {
  /// The mount points.
  let paths: [String]

  /// Finds those that this process's mount namespace has.
  init(in mountPoint: [UInt8]) {
    let prefix = mountPoint + [UInt8(ascii: "/")]
    paths = MountTableEntry.all().map(\.mountPoint).filter { $0.starts(with: prefix) }.map(\.text)
  }

  init() { paths = [] }

  var lines: [String] {
    paths.map { "mounted at \($0): other spellings of this path show what lies beneath" }
  }
}
