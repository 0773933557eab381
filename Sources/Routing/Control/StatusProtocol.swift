/// The ioctl(2) protocol between the daemon and its clients.
///
/// The client calls ioctl(2) on the mount's root, or on a directory, and so needs no reserved file name. Each call
/// returns one page of a text. Page 0 generates the text; a later page fails with ESTALE if the daemon no longer
/// holds the text. A reply begins with the length of the text in bytes (4 bytes, little-endian). A text of more
/// than 256 pages fails with EFBIG.
public enum StatusProtocol {
  /// The size of a page in bytes; the ioctl number limits a reply to 16,383.
  public static let pageSize = 16_000
  /// The maximum size of a reply in bytes.
  public static let replySize = pageSize + 4

  /// The request: the ioctl's type letter.
  public enum Form: UInt8, CaseIterable, Sendable {
    /// The status as a JSON object.
    case json = 0x6A
    /// The status as text.
    case text = 0x74
    /// The control file's name.
    case controlName = 0x63
    /// The path of the resource folder and the localizations in search order, each with a final NUL.
    case resources = 0x72
    /// The comparison of the layers in a directory, without unchanged files.
    case differences = 0x64
    /// The comparison of the layers in a directory.
    case entries = 0x65
    /// Disconnects the control file's listeners before an unmount; the text is empty.
    case disconnect = 0x71
    /// Has the program that is installed now take the daemon's place; the text says why not, or is empty. For the mount's
    /// owner and root.
    case upgrade = 0x75
    /// Waits until every change that was finished before is visible through the mount, as `sync` of the control file, but
    /// without a result there; the text is empty. For the mount's owner and root.
    case barrier = 0x62
  }

  /// The maximum size of a text in bytes.
  public static let maxTextSize = pageSize << 8

  /// The ioctl number of a page: `_IOC(_IOC_READ, form, page, replySize)`.
  public static func command(_ form: Form, page: UInt8) -> UInt32 {
    2 << 30 | UInt32(replySize) << 16 | UInt32(form.rawValue) << 8 | UInt32(page)
  }

  /// Parses a reply: the page, and the length of the whole text; `done` bytes were in the preceding pages.
  public static func page(in reply: [UInt8], after done: Int) -> (bytes: ArraySlice<UInt8>, length: Int) {
    guard reply.count >= 4 else { return ([], 0) }
    let length = reply.withUnsafeBytes { Int(UInt32(littleEndian: $0.loadUnaligned(as: UInt32.self))) }
    return (reply[4..<min(reply.count, 4 + max(0, length - done))], length)
  }

  /// Whether a reply is one file name. A client must not open other paths on behalf of an untrusted daemon.
  public static func isControlName(_ name: [UInt8]) -> Bool {
    !name.isEmpty && name.count <= 255 && !name.contains(0) && !name.contains(UInt8(ascii: "/"))
      && !name.elementsEqual(".".utf8) && !name.elementsEqual("..".utf8)
  }
}
