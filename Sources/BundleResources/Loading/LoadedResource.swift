import Foundation
import FoundationNetworking

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
  /// The content; empty if only the description was requested.
  public let data: Data

  /// The response that URLSession delivers for the resource.
  public var response: URLResponse {
    URLResponse(
      url: url, mimeType: mimeType, expectedContentLength: length, textEncodingName: textEncodingName)
  }
}
