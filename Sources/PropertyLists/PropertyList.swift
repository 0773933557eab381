/// Parses property lists: XML, binary, and the OpenStep format.
///
/// Foundation traps on some malformed files, so its parser is unsuitable for files from elsewhere. The parsers do not
/// recurse; time and memory are proportional to the size of the file, also for malicious files.
public struct PropertyList: Sendable {
  /// The outermost dictionary; of a malformed text, the members that precede the error.
  public let dictionary: PropertyListDictionary
  /// Why the text is malformed; nil if it is whole.
  public let error: PropertyListError?

  /// The formats of property lists.
  public enum Format: Sendable, Hashable {
    /// `bplist00`.
    case binary
    /// `<plist version="1.0">`.
    case xml
    /// `{ Key = "value"; }`.
    case openStep

    /// The format of a file by its first bytes.
    /// - Parameter text: the content in UTF-8 without a byte order mark, or a binary property list.
    public init(of text: [UInt8]) {
      var scanner = ByteScanner(text)
      scanner.skipWhitespace()
      self = text.starts(with: "bplist".utf8) ? .binary : scanner.next == UInt8(ascii: "<") ? .xml : .openStep
    }
  }

  /// Parses a property list. It is malformed if it is no dictionary, or nests deeper than 128 levels.
  public init(_ content: [UInt8]) {
    if case .binary = Format(of: content) { self.init(binary: content) } else { self.init(text: content) }
  }

  private init(dictionary: PropertyListDictionary, error: PropertyListError?) {
    (self.dictionary, self.error) = (dictionary, error)
  }

  private init(binary content: [UInt8]) {
    let root = BinaryPropertyList(content)?.dictionary()
    dictionary = root ?? PropertyListDictionary()
    error = root == nil ? PropertyListError(reason: "malformed binary property list", position: nil) : nil
  }

  private init(text content: [UInt8]) {
    guard let text = PropertyListText(content) else {
      let error = PropertyListError(reason: "an unknown encoding", position: nil)
      self.init(dictionary: PropertyListDictionary(), error: error)
      return
    }
    self.init(decoded: text)
  }

  /// Parses the XML or OpenStep format.
  public init(decoded text: PropertyListText) {
    let scanner = ByteScanner(text.utf8)
    let (builder, failure): (PropertyListBuilder, (String, Int)?)
    if case .xml = Format(of: text.utf8) {
      var parser = XMLPropertyList(scanner)
      (builder, failure) = parser.parse()
    } else {
      var parser = OpenStepPropertyList(scanner)
      (builder, failure) = parser.parse()
    }
    dictionary = builder.dictionary
    if text.isMalformed {
      error = PropertyListError(reason: text.malformation, offset: text.utf8.count, in: text.utf8)
    } else {
      error = failure.map { PropertyListError(reason: $0.0, offset: $0.1, in: text.utf8) }
    }
  }

  /// Finds strings in the outermost dictionary. Another value that follows a string takes its place.
  /// - Returns: nil if the text is malformed.
  public static func strings(in content: [UInt8], for keys: [String]) -> [String: String]? {
    let list = PropertyList(content)
    if list.error != nil { return nil }
    var found: [String: String] = [:]
    for key in keys { found[key] = list.dictionary[key]?.string }
    return found
  }
}
