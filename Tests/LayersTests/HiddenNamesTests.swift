import Glibc
import Posix
import TestSupport
import Testing

@testable import Layers

@Suite struct HiddenNamesTests {
  /// Whether the patterns hide the entry of a path.
  private func hides(_ patterns: [String], _ path: String, foldsNames: Bool = false) throws -> Bool {
    let names = try HiddenNames(patterns.map { Array($0.utf8) }, foldsNames: foldsNames)
    var place = names.root
    var parts = path.split(separator: "/").map(String.init)
    let last = parts.removeLast()
    for part in parts { place = part.withCString { place.entering($0) } }
    return last.withCString { place.hides($0) }
  }

  @Test(
    "names match everywhere, paths from the root",
    arguments: [
      ("*.bak", "a.bak", true), ("*.bak", "a/b/c.bak", true), ("*.bak", "a.bak/c", false),
      ("a?c", "abc", true), ("a?c", "ac", false), ("[!a]b", "cb", true), ("[!a]b", "ab", false),
      (#"\*"#, "*", true), (#"\*"#, "x", false), ("/a", "a", true), ("/a", "b/a", false),
      ("a/b", "a/b", true), ("a/b", "c/a/b", false), ("a/*", "a/b", true), ("a/*", "a/b/c", false),
      ("*/b", "a/b", true), ("*/b", "b", false), ("**/b", "b", true), ("**/b", "x/y/b", true),
      ("**/a/*.c", "x/a/y.c", true), ("**/a/*.c", "x/a/y/z.c", false), ("a/**/b", "a/b", true),
      ("a/**/b", "a/x/y/b", true), ("a/**/b", "x/b", false), ("A", "a", false),
    ])
  func matching(pattern: String, path: String, isHidden: Bool) throws {
    #expect(try hides([pattern], path) == isHidden)
    #expect(try hides(["nothing", "x/nothing", pattern], path) == isHidden)
  }

  @Test("case is folded where it does not count")
  func folding() throws {
    #expect(try hides(["*.BAK"], "x.bak", foldsNames: true))
    #expect(try hides(["Data/[A-C]*"], "DATA/bX", foldsNames: true))
    #expect(try !hides(["*.BAK"], "x.bak"))
  }

  @Test("a pattern with many stars takes no exponential time")
  func stars() throws {
    let pattern = String(repeating: "*a", count: 100) + "b"
    let path = Array(repeating: "**", count: 40).joined(separator: "/") + "/x"
    let names = try HiddenNames([Array(pattern.utf8), Array(path.utf8)], foldsNames: false)
    var place = names.root
    let name = String(repeating: "a", count: 255)
    for _ in 0..<200 {
      name.withCString {
        #expect(!place.hides($0))
        place = place.entering($0)
      }
    }
    #expect("x".withCString { place.hides($0) })
  }

  @Test("patterns that cannot match a path are refused")
  func faults() {
    for pattern in ["", "a[", #"a\"#, "a/", "a//b", "./a", "a/../b", "a/**", "//a"] {
      #expect(throws: HiddenNames.Fault.self, "\(pattern)") {
        _ = try HiddenNames([Array(pattern.utf8)], foldsNames: false)
      }
    }
  }
}
