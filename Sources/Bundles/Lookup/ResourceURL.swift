import Posix

/// Why a URL is not a valid resource URL.
public struct ResourceURLError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The errno to fail with.
  public let errno: Errno
  /// The reason, for users.
  public let description: String

  init(_ description: String) {
    errno = .invalidArgument
    self.description = description
  }
}

/// A parsed resource URL: `rsrc:///DIR/NAME?localization=fr`.
public struct ResourceURL: Sendable, Hashable {
  /// The names below the resource folder; not empty.
  public let path: [[UInt8]]
  /// The only localization to search; nil for those of the options.
  public let localization: [UInt8]?

  /// Validates the parts of a URL.
  ///
  /// Empty segments and `.` are dropped. `..` is rejected in any encoding, also beside a slash encoded as `%2F`.
  /// Other encoded slashes are part of a name, which then matches no file.
  /// - Parameters:
  ///   - host: nil if the URL has none.
  ///   - segments: The path, split at slashes and then percent-decoded.
  ///   - localization: The query's parameter, decoded.
  /// - Throws: EINVAL.
  public init(host: [UInt8]?, segments: [[UInt8]], localization: [UInt8]? = nil) throws(ResourceURLError) {
    let host = host ?? []
    guard host.isEmpty || lowercased(host).elementsEqual("localhost".utf8) else {
      throw ResourceURLError(
        "a resource URL has three slashes and no host, unlike \(String(decoding: host, as: UTF8.self))")
    }
    for segment in segments { try Self.validate(segment) }
    if let localization { try Self.validate(localization: localization) }
    path = segments.filter { !$0.isEmpty && !$0.elementsEqual(".".utf8) }
    self.localization = localization
    if path.isEmpty { throw ResourceURLError("the URL names no resource") }
  }

  private static func validate(_ segment: [UInt8]) throws(ResourceURLError) {
    if segment.contains(0) { throw ResourceURLError("a resource's name holds no NUL") }
    for part in segment.split(separator: UInt8(ascii: "/")) where part.elementsEqual("..".utf8) {
      throw ResourceURLError("a resource's path does not climb with ..")
    }
  }

  /// Validates the name of a localization; throws EINVAL.
  public static func validate(localization: [UInt8]) throws(ResourceURLError) {
    guard !localization.isEmpty, !localization.contains(0), !localization.contains(UInt8(ascii: "/")) else {
      throw ResourceURLError("a localization is the name of a folder without .lproj, such as fr")
    }
  }
}
