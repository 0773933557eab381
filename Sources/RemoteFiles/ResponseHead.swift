import Posix

/// The status and the headers of a server's answer that are of use.
struct ResponseHead: Sendable {
  private(set) var status = 0
  private(set) var validator = Validator()
  private(set) var contentRange: ContentRange?
  /// Bytes; nil if the server does not say.
  private(set) var contentLength: UInt64?
  private var hasLocation = false
  /// Whether it names another URL to be asked (RFC 9110, section 15.4).
  var isRedirect: Bool { hasLocation && [301, 302, 303, 307, 308].contains(status) }
  /// What is wrong with it; nil for nothing.
  private(set) var fault: String?
  private var bytes = 0

  /// More than any server should send.
  private static let mostBytes = 128 << 10
  private static let mostValidatorBytes = 512

  /// The value of `Content-Range`.
  struct ContentRange: Equatable, Sendable {
    let range: Range<UInt64>
    /// The size of the whole object.
    let total: UInt64

    /// - Returns: nil if it is not `bytes FIRST-LAST/TOTAL`, or contradicts itself.
    init?(_ value: ArraySlice<UInt8>) {
      guard value.starts(with: "bytes ".utf8) else { return nil }
      let parts = value.dropFirst(6).split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
      let ends = parts[0].split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
      guard parts.count == 2, ends.count == 2, let first = ResponseHead.number(ends[0]),
        let last = ResponseHead.number(ends[1]), let total = ResponseHead.number(parts[1]), first <= last,
        last < total, total <= UInt64(Int64.max)
      else { return nil }
      (range, self.total) = (first..<last + 1, total)
    }
  }

  /// Takes a header line. A status line begins another answer, as after a redirect.
  /// - Returns: false if the headers are too long.
  mutating func add(_ line: ArraySlice<UInt8>) -> Bool {
    if line.starts(with: "HTTP/".utf8) {
      let former = bytes
      self = ResponseHead()
      bytes = former
      let words = line.split(separator: UInt8(ascii: " "))
      status = words.count > 1 ? Self.number(Self.trimmed(words[1])).flatMap { Int(exactly: $0) } ?? 0 : 0
    } else if let colon = line.firstIndex(of: UInt8(ascii: ":")) {
      let name = line[..<colon].map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
      add(String(decoding: name, as: UTF8.self), Self.trimmed(line[(colon + 1)...]))
    }
    bytes += line.count
    return bytes <= Self.mostBytes
  }

  private mutating func add(_ name: String, _ value: ArraySlice<UInt8>) {
    switch name {
    case "etag":
      let isStrong =
        value.count >= 2 && value.first == UInt8(ascii: "\"") && value.last == UInt8(ascii: "\"")
      validator.entityTag = isStrong && Self.isValidator(value) ? Array(value) : []
    case "last-modified": validator.modified = Self.isValidator(value) ? Array(value) : []
    case "content-range":
      contentRange = ContentRange(value)
      // Of a status 416 it has no range.
      if contentRange == nil, status == 206 { fault = "a Content-Range that cannot be read" }
    case "content-length":
      let length = Self.number(value).flatMap { $0 <= UInt64(Int64.max) ? $0 : nil }
      if length == nil || (contentLength != nil && contentLength != length) {
        fault = "a wrong Content-Length"
      }
      contentLength = length
    case "content-encoding":
      if !value.isEmpty, !value.elementsEqual("identity".utf8) {
        fault = "a Content-Encoding that was not asked for"
      }
    case "location": hasLocation = true
    default: break
    }
  }

  private static func isValidator(_ value: ArraySlice<UInt8>) -> Bool {
    value.count <= mostValidatorBytes && value.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
  }

  private static func trimmed(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    text.trimming { $0 <= 0x20 }
  }

  /// A decimal number of digits alone.
  static func number(_ text: ArraySlice<UInt8>) -> UInt64? {
    if text.isEmpty || text.count > 20 { return nil }
    var number: UInt64 = 0
    for byte in text {
      guard (0x30...0x39).contains(byte) else { return nil }
      let (tens, overflows) = number.multipliedReportingOverflow(by: 10)
      let (sum, exceeds) = tens.addingReportingOverflow(UInt64(byte - 0x30))
      if overflows || exceeds { return nil }
      number = sum
    }
    return number
  }
}

extension ArraySlice<UInt8> {
  /// The text without what is blank at its ends.
  func trimming(_ isBlank: (UInt8) -> Bool) -> ArraySlice {
    var text = drop(while: isBlank)
    while let last = text.last, isBlank(last) { text.removeLast() }
    return text
  }
}
