/// How a mount is asked to tell of itself.
///
/// It is read by IOCTL on the root, or on the directory that is meant: that needs no room in the file system's
/// names, and works whatever else is declined. A page of the text is asked for at a time; page 0 makes the text
/// anew, and answers ESTALE for others where somebody else has asked meanwhile. Each answer begins with the text's
/// length in bytes (4 bytes, little-endian); a text of more than 256 pages is refused with EFBIG.
public enum StatusProtocol {
  /// Bytes of text in a page: what one IOCTL can carry is 16,383 bytes.
  public static let pageSize = 16_000
  /// The size of an answer in bytes, at most.
  public static let replySize = pageSize + 4

  /// As what it tells.
  public enum Form: UInt8, CaseIterable, Sendable {
    /// One JSON object.
    case json = 0x6A
    /// Lines for a person.
    case text = 0x74
    /// The control file's name.
    case controlName = 0x63
    /// Where resources are looked for: the resource folder's path, then the localizations in order, each
    /// followed by NUL.
    case resources = 0x72
    /// What the layers have in a directory, but for unchanged files.
    case differences = 0x64
    /// What the layers have in a directory.
    case entries = 0x65
    /// Nothing; but whoever waits at the control file is told to go, since the mount is to end.
    case disconnect = 0x71
  }

  /// Bytes of a text, at most.
  public static let maxTextSize = pageSize << 8

  /// The IOCTL's number for a page: _IOC(_IOC_READ, the form's letter, page, replySize).
  public static func command(_ form: Form, page: UInt8) -> UInt32 {
    2 << 30 | UInt32(replySize) << 16 | UInt32(form.rawValue) << 8 | UInt32(page)
  }

  /// What an answer has of the text.
  /// - Parameter done: how much of the text came with the pages before, in bytes.
  /// - Returns: the page, and how long the whole text is.
  public static func page(in answer: [UInt8], after done: Int) -> (bytes: ArraySlice<UInt8>, length: Int) {
    guard answer.count >= 4 else { return ([], 0) }
    let length = answer.withUnsafeBytes { Int(UInt32(littleEndian: $0.loadUnaligned(as: UInt32.self))) }
    return (answer[4..<min(answer.count, 4 + max(0, length - done))], length)
  }

  /// Whether a mount's answer can be its control file's name. It is not for the mount to say where else a file
  /// is opened.
  public static func isControlName(_ name: [UInt8]) -> Bool {
    !name.isEmpty && name.count <= 255 && !name.contains(0) && !name.contains(UInt8(ascii: "/"))
      && !name.elementsEqual(".".utf8) && !name.elementsEqual("..".utf8)
  }
}
