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
  func write(to json: inout JSONText) {
    json.name("path")
    json.text(String(escaping: path))
    json.name("file")
    json.text(file)
    json.name("layer")
    json.text(String(escaping: layer))
    json.name("mimeType")
    json.text(mimeType)
    json.name("expectedContentLength")
    if let expectedContentLength { json.integer(expectedContentLength) } else { json.null() }
    json.name("textEncodingName")
    if let textEncodingName { json.text(textEncodingName) } else { json.null() }
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
