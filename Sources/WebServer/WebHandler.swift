/// Answers the requests that have passed the gate.
public protocol WebHandler: Sendable {
  /// Begins to answer a request, on the thread of its connection.
  /// - Throws: what the answer is then.
  func exchange(for request: WebRequest) throws(WebError) -> any WebExchange
  /// The response for an error.
  func response(for error: WebError) -> WebResponse
}

/// A request that is being answered, on the thread of its connection.
public protocol WebExchange: AnyObject {
  /// Takes the next bytes of the body.
  func receive(_ bytes: UnsafeRawBufferPointer) throws(WebError)
  /// Answers the request, whose body is complete.
  func response() throws(WebError) -> WebResponse
}

/// A request whose body is kept in memory, or that has none.
public final class BufferedExchange: WebExchange {
  private let limit: Int
  private let answer: ([UInt8]) throws(WebError) -> WebResponse
  private var body: [UInt8] = []

  /// - Parameters:
  ///   - limit: the most bytes of the body.
  ///   - answer: is passed the body.
  public init(limit: Int = 0, _ answer: @escaping ([UInt8]) throws(WebError) -> WebResponse) {
    (self.limit, self.answer) = (limit, answer)
  }

  /// - Throws: 413 beyond the limit.
  public func receive(_ bytes: UnsafeRawBufferPointer) throws(WebError) {
    if bytes.count > limit - body.count { throw WebError(413, "the request is too large") }
    body += bytes
  }

  /// Answers the request.
  public func response() throws(WebError) -> WebResponse { try answer(body) }
}
