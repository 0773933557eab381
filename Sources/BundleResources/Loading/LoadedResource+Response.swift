#if Networking
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension LoadedResource {
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
#endif
