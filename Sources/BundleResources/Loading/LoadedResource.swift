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
  /// The content, or the requested part of it; empty if only the description was requested.
  public let data: Data
  /// The requested part of the content; nil for the whole, empty if the content ends before it.
  public let range: Range<Int>?

  /// The response that URLSession delivers for the resource. For a part it is an `HTTPURLResponse` as RFC 9110, section
  /// 15.3.7, has it: status 206 with `Content-Range`, or 416 if the content ends before the part.
  public var response: URLResponse {
    if let range, let response = partialResponse(range) { return response }
    return URLResponse(
      url: url, mimeType: mimeType, expectedContentLength: length, textEncodingName: textEncodingName)
  }

  private func partialResponse(_ range: Range<Int>) -> HTTPURLResponse? {
    let charset = textEncodingName.map { "; charset=\($0)" } ?? ""
    let part = range.isEmpty ? "*" : "\(range.lowerBound)-\(range.upperBound - 1)"
    return HTTPURLResponse(
      url: url, statusCode: range.isEmpty ? 416 : 206, httpVersion: "HTTP/1.1",
      headerFields: [
        "Content-Type": mimeType + charset, "Content-Length": "\(range.count)",
        "Content-Range": "bytes \(part)/\(length)", "Accept-Ranges": "bytes",
      ])
  }
}
