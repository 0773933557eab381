import Foundation

/// A resource and its content.
public struct LoadedResource: Sendable {
  /// The URL of the request.
  public let url: URL
  /// The MIME type, such as `image/png`.
  public let mimeType: String
  /// The IANA name of the text encoding, such as `utf-8`; nil if the content is not text.
  public let textEncodingName: String?
  /// The size of the content in bytes.
  public let length: Int
  /// The content, or the requested part of it; empty if only the description was requested.
  public let data: Data
  /// The requested part of the content; nil for the whole, empty if the content ends before it.
  public let range: Range<Int>?
}
