/// The ioctl(2) by which clients read the results of a control file from where they left off.
///
/// The client calls ioctl(2) on the open control file. The buffer holds a position, of which the reply depends alone,
/// and then the reply: the sequence number of the result in which the text begins, that of the newest result, and text
/// of whole or partial lines. A text that begins in a later result than the position says that the results in between
/// are no longer kept.
public enum ResultsProtocol {
  /// Where a text begins.
  public struct Position: Hashable, Sendable {
    /// The sequence number of a result.
    public let sequence: UInt64
    /// The offset in its line, in bytes.
    public let offset: UInt64

    /// The position in a line.
    public init(_ sequence: UInt64, offset: UInt64 = 0) {
      self.sequence = sequence
      self.offset = offset
    }
  }

  /// A reply.
  public struct Page: Sendable {
    /// The sequence number of the result in which the text begins, or of the next one if there is no text.
    public let first: UInt64
    /// The sequence number of the newest result; 0 if there is none.
    public let newest: UInt64
    /// Lines, of which the last may be incomplete.
    public let text: ArraySlice<UInt8>

    /// Creates a reply.
    public init(first: UInt64, newest: UInt64, text: ArraySlice<UInt8>) {
      (self.first, self.newest, self.text) = (first, newest, text)
    }
  }

  /// `POLLMSG`, which only clients that read by this ioctl poll for.
  public static let pollEvent: Int16 = 0x400

  /// The size of a buffer for a few results, and of one for many; an ioctl number limits it to 16,383.
  public static let bufferSizes = (small: 1024, large: 16_000)
  private static let headerSize = 24

  /// The ioctl number for a size of the buffer: `_IOWR('l', 1, size)`.
  public static func command(size: Int) -> UInt32 { 3 << 30 | UInt32(size) << 16 | 0x6C << 8 | 1 }

  /// Whether an ioctl number is one of these; the size may be any that holds a reply.
  public static func isCommand(_ command: UInt32, size: Int) -> Bool {
    size > headerSize && size < 1 << 14 && command == self.command(size: size)
  }

  /// The bytes of text that fit into a buffer.
  public static func textSize(in size: Int) -> Int { size - headerSize }

  /// The content of a buffer before the call.
  public static func request(_ position: Position, size: Int) -> [UInt8] {
    var buffer = words([position.sequence, position.offset])
    buffer += [UInt8](repeating: 0, count: size - buffer.count)
    return buffer
  }

  /// The position in a request; nil if it is too short.
  public static func position(in request: UnsafeRawBufferPointer) -> Position? {
    guard request.count >= 16 else { return nil }
    return Position(word(0, in: request), offset: word(1, in: request))
  }

  /// The bytes of a reply.
  public static func reply(_ page: Page) -> [UInt8] {
    words([page.first, page.newest, UInt64(page.text.count)]) + page.text
  }

  /// Parses a buffer after the call.
  public static func page(in buffer: [UInt8]) -> Page? {
    guard buffer.count >= headerSize else { return nil }
    return buffer.withUnsafeBytes { bytes in
      guard let count = Int(exactly: word(2, in: bytes)), count <= textSize(in: bytes.count) else {
        return nil
      }
      return Page(
        first: word(0, in: bytes), newest: word(1, in: bytes),
        text: buffer[headerSize..<headerSize + count])
    }
  }

  private static func words(_ words: [UInt64]) -> [UInt8] {
    words.flatMap { word in withUnsafeBytes(of: word.littleEndian) { Array($0) } }
  }

  private static func word(_ index: Int, in bytes: UnsafeRawBufferPointer) -> UInt64 {
    UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self))
  }
}
