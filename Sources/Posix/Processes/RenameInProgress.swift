import CLinux
import CLibrary

/// The rename in which a thread of another process waits for the kernel.
public struct RenameInProgress {
  /// The components of the former path, from the root of the process's view on, as far as symbolic links do not lead elsewhere.
  public let source: [[UInt8]]
  /// Those of the new path.
  public let target: [[UInt8]]
  /// Whether the two entries are exchanged.
  public let isExchange: Bool

  /// Examines a thread, which takes the rights that ptrace(2) does.
  /// - Returns: nil if it waits in another call, or may not be examined.
  public init?(ofThread thread: Int32) {
    var rename = linux_rename()
    guard linux_rename_in_progress(thread, &rename),
      let source = Self.components(Self.bytes(&rename.from), from: rename.from_directory, of: thread),
      let target = Self.components(Self.bytes(&rename.to), from: rename.to_directory, of: thread)
    else { return nil }
    (self.source, self.target) = (source, target)
    isExchange = rename.flags & Descriptor.RenameMode.exchange.rawValue != 0
  }

  /// The bytes of a string in an array of C.
  private static func bytes(_ array: inout some Any) -> [UInt8] {
    withUnsafeBytes(of: &array) { [UInt8]($0.prefix { $0 != 0 }) }
  }

  /// - Parameter directory: where a relative path begins.
  private static func components(
    _ path: [UInt8], from directory: CInt, of thread: Int32
  ) -> [[UInt8]]? {
    let slash = UInt8(ascii: "/")
    var bytes = path
    if path.first != slash {
      let link = directory == AT_FDCWD ? "cwd" : "fd/\(directory)"
      let path = Array("/proc/\(thread)/\(link)".utf8)
      guard let base = try? Descriptor.open(path, [.pathOnly, .noFollow]).linkTarget() else { return nil }
      bytes = base + [slash] + bytes
    }
    var components: [[UInt8]] = []
    for component in bytes.split(separator: slash).map(Array.init) where component != Array(".".utf8) {
      if component != Array("..".utf8) { components.append(component) } else { _ = components.popLast() }
    }
    return components
  }
}
