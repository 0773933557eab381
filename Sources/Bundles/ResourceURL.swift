import Posix

/// Why a URL names no resource.
public struct ResourceURLError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What the one who asked is answered.
  public let errno: Errno
  /// Why, for people.
  public let description: String

  init(_ description: String) {
    errno = .invalidArgument
    self.description = description
  }
}

/// What a resource URL (`rsrc:///DIR/NAME?localization=fr`) asks for, once it has been taken apart.
public struct ResourceURL: Sendable, Hashable {
  /// The names below the resource folder; at least one.
  public let path: [[UInt8]]
  /// The only localization to look in; nil: those of the options.
  public let localization: [UInt8]?

  /// Checks the parts of a URL.
  ///
  /// Empty segments and `.` are dropped. `..` is refused, however it was written, also on either side of a
  /// slash that was written `%2F`; otherwise such a slash is part of its name, and so nothing is found.
  /// - Parameters:
  ///   - host: nil where the URL has none.
  ///   - segments: those of the path, as split at slashes and then percent-decoded.
  ///   - localization: the query's, decoded.
  public init(host: [UInt8]?, segments: [[UInt8]], localization: [UInt8]? = nil) throws(ResourceURLError) {
    let host = host ?? []
    guard host.isEmpty || lowercased(host).elementsEqual("localhost".utf8) else {
      throw ResourceURLError(
        "a resource URL has three slashes and no host, unlike \(String(decoding: host, as: UTF8.self))")
    }
    for segment in segments { try Self.check(segment) }
    if let localization { try Self.check(localization: localization) }
    path = segments.filter { !$0.isEmpty && !$0.elementsEqual(".".utf8) }
    self.localization = localization
    if path.isEmpty { throw ResourceURLError("the URL names no resource") }
  }

  private static func check(_ segment: [UInt8]) throws(ResourceURLError) {
    if segment.contains(0) { throw ResourceURLError("a resource's name holds no NUL") }
    for part in segment.split(separator: UInt8(ascii: "/")) where part.elementsEqual("..".utf8) {
      throw ResourceURLError("a resource's path does not climb with ..")
    }
  }

  /// Checks what is to be the name of a localization.
  public static func check(localization: [UInt8]) throws(ResourceURLError) {
    guard !localization.isEmpty, !localization.contains(0), !localization.contains(UInt8(ascii: "/")) else {
      throw ResourceURLError("a localization is the name of a folder without .lproj, such as fr")
    }
  }
}
