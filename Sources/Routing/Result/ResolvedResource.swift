/// What a resource's URL resolved to, as its result tells it.
public struct ResolvedResource: Hashable, Sendable {
  /// The path from the mount's root, which need not be UTF-8.
  public let path: [UInt8]
  /// The `file:` URL of the file in the mount.
  public let file: String
  /// The path of the layer that the file comes from.
  public let layer: [UInt8]
  /// The MIME type.
  public let mimeType: String
  /// The size in bytes; nil for what has none, such as a directory.
  public let expectedContentLength: UInt64?
  /// How the text is encoded, by IANA's name; nil for what is no text.
  public let textEncodingName: String?

  /// A resolved resource.
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

  /// Writes the members of a result.
  func write(to json: inout JSONWriter) {
    json.member("path", String(escaping: path))
    json.member("file", file)
    json.member("layer", String(escaping: layer))
    json.member("mimeType", mimeType)
    json.member("expectedContentLength", expectedContentLength)
    json.member("textEncodingName", textEncodingName)
  }
}

/// URLs of files (RFC 8089).
public enum FileURL {
  /// The URL of an absolute path: what is neither unreserved nor a slash is percent-encoded.
  /// - Parameter isDirectory: the URL then ends with a slash.
  public static func text(of path: [UInt8], isDirectory: Bool = false) -> String {
    let end: [UInt8] = isDirectory && path.last != UInt8(ascii: "/") ? [UInt8(ascii: "/")] : []
    return "file://" + PercentCoding.encoded(path: path + end)
  }
}
