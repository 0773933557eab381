import Posix
import Routing

/// The client side of ``StatusProtocol``: reads a mount's status texts by IOCTL, page by page.
public enum StatusClient {
  /// Reads a text about the mount whose root is at the path.
  /// - Throws: ENOTTY where no bundlefs is mounted; ESTALE while other clients keep replacing the text.
  public static func read(_ form: StatusProtocol.Form, at path: [UInt8]) throws(Errno) -> [UInt8] {
    try read(form, of: Descriptor.open(path, [.read, .directory]))
  }

  /// Reads a text about an open directory of a mount.
  public static func read(
    _ form: StatusProtocol.Form, of directory: borrowing Descriptor
  ) throws(Errno) -> [UInt8] {
    for _ in 0..<64 {
      do throws(Errno) { return try readPages(form, of: directory) } catch {
        if error != .staleFileHandle { throw error }
      }
    }
    throw .staleFileHandle
  }

  private static func readPages(
    _ form: StatusProtocol.Form, of directory: borrowing Descriptor
  ) throws(Errno) -> [UInt8] {
    var text: [UInt8] = []
    for page in UInt8.min...UInt8.max {
      let answer = try directory.ioctl(
        StatusProtocol.command(form, page: page), size: StatusProtocol.replySize)
      let (part, length) = StatusProtocol.page(in: answer, after: text.count)
      text += part
      if text.count >= length { return text }
    }
    return text
  }
}
