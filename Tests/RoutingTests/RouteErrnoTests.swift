import TestSupport
import Testing

@testable import Routing

/// The table of errnos is that of the manual page.
@Suite struct RouteErrnoTests {
  /// The kernel's own error of a mount with `-o ro`: no line reaches bundlefs.
  private static let ofKernel = "EROFS"

  /// The errnos below the heading ERRORS.
  private static func listed() throws -> [String] {
    let page = ByteString(#filePath).parent.parent.parent / "scripts/share/man/bundlefs-routes.5"
    let lines = String(decoding: try page.read(), as: UTF8.self).split(separator: "\n")
    let section = lines.drop { $0 != ".SH ERRORS" }.dropFirst().prefix { !$0.hasPrefix(".SH") }
    return zip(section, section.dropFirst()).compactMap { tag, line in
      tag == ".TP" && line.hasPrefix(".B ") ? String(line.dropFirst(3)) : nil
    }
  }

  @Test("bundlefs-routes(5) lists the errnos, each once")
  func manual() throws {
    #expect(try Self.listed().sorted() == (RouteErrno.allCases.map(\.rawValue) + [Self.ofKernel]).sorted())
  }

  @Test("each errno has a number of its own", arguments: RouteErrno.allCases)
  func number(errno: RouteErrno) { #expect(RouteErrno(number: errno.number) == errno) }
}
