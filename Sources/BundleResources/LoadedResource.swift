import Foundation
import FoundationNetworking

/// A resource with its content.
public struct LoadedResource: Sendable {
  /// The URL that was asked for.
  public let url: URL
  /// Its MIME type, such as `image/png`.
  public let mimeType: String
  /// How its text is encoded, by IANA's name, such as `utf-8`; nil for what is no text.
  public let textEncodingName: String?
  /// The size of the content in bytes.
  public let length: Int
  /// The content; empty where only the description was asked for.
  public let data: Data

  /// The resource as URLSession describes what it loads.
  public var response: URLResponse {
    URLResponse(
      url: url, mimeType: mimeType, expectedContentLength: length, textEncodingName: textEncodingName)
  }
}
