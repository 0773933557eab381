/// The file that a resource URL resolved to.
public struct ResolvedResource: Hashable, Sendable {
  /// The path from the mount's root; any bytes.
  public let path: [UInt8]
  /// The `file:` URL in the mount.
  public let file: String
  /// The path of the file's layer.
  public let layer: [UInt8]
  /// The MIME type.
  public let mimeType: String
  /// The size in bytes; nil for other kinds than regular files.
  public let expectedContentLength: UInt64?
  /// The IANA name of the text encoding; nil if the file is not text.
  public let textEncodingName: String?

  /// Creates a resolved resource.
  public init(
    path: [UInt8], file: String, layer: [UInt8], mimeType: String, expectedContentLength: UInt64?,
    textEncodingName: String?
  ) {
    self.path = path
    self.file = file
    self.layer = layer
    self.mimeType = mimeType
    self.expectedContentLength = expectedContentLength
    self.textEncodingName = textEncodingName
  }

  func write(to json: inout JSONWriter) {
    json.member("path", String(escaping: path))
    json.member("file", file)
    json.member("layer", String(escaping: layer))
    json.member("mimeType", mimeType)
    json.member("expectedContentLength", expectedContentLength)
    json.member("textEncodingName", textEncodingName)
  }
}

/// `file:` URLs (RFC 8089).
public enum FileURL {
  /// The URL of an absolute path; that of a directory ends with a slash.
  public static func text(of path: [UInt8], isDirectory: Bool = false) -> String {
    let end: [UInt8] = isDirectory && path.last != UInt8(ascii: "/") ? [UInt8(ascii: "/")] : []
    return "file://" + PercentCoding.encoded(path: path + end)
  }
}
