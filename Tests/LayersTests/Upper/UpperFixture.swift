import Glibc
import Posix
import TestSupport

@testable import Layers

/// An upper layer, `0`, above a lower one, `1`, in a temporary folder.
final class UpperFixture {
  let folder: TemporaryFolder
  let upper: ByteString
  let lower: ByteString
  private var opened: UpperTree?

  /// - Parameter size: for the upper layer on a tmpfs of this size, as for mount(8).
  init(tmpfs size: String? = nil) throws {
    folder = try TemporaryFolder()
    (upper, lower) = (try folder.folder("0"), try folder.folder("1"))
    guard let size else { return }
    try Command("mount", "-t", "tmpfs", "-o", "size=\(size)", "tmpfs", upper.text).check()
  }

  /// Opened at the first use, when the layers are filled.
  func tree() throws -> UpperTree {
    if let opened { return opened }
    let tree = try UpperTree([upper, lower])
    opened = tree
    return tree
  }

  /// The names in the upper layer's root, without the empty work folder.
  func upperNames() throws -> [ByteString] {
    try tree().upper.close()
    return try upper.names()
  }

  /// Copies a file up.
  @discardableResult
  func copyUp(_ path: ByteString..., size: UInt64? = nil) throws -> ByteString {
    _ = try tree().openOwn(path, size: size)
    return upper / path.text
  }
}
