import FoundationEssentials
import Posix
import TestSupport
import Testing

/// A `resolved` result, decoded by Foundation.
private struct Resolved: Decodable, Equatable {
  var outcome: String
  var path: String
  var file: String
  var layer: String
  var mimeType: String
  var expectedContentLength: Int?
  var textEncodingName: String?
}

/// Resource URLs written to the control file.
extension MountTests {
  @Suite struct ResolvedURLTests {
    private func resolved(_ line: String, _ mount: Mount) throws -> Resolved {
      try mount.writeControl(line)
      let last = try #require(try mount.routesText().lines.last)
      return try JSONDecoder().decode(Resolved.self, from: Data(last.utf8))
    }

    @Test("a result has all fields of a resource", .timeLimit(.minutes(1)))
    func allFields() throws {
      let bundle = try BundleFixture()
      try bundle.put(["logo.png": "mine"], in: bundle.substitution)
      let (main, substitution) = (bundle.fixture.main.text, bundle.fixture.substitution.text)
      try withMount(bundle.setup()) { mount in
        let root = "file://" + mount.point.text + "/Contents/Resources/"
        let cases: [(String, Resolved)] = [
          (
            "rsrc:///logo.png",
            Resolved(
              outcome: "resolved", path: "Contents/Resources/logo.png", file: root + "logo.png",
              layer: substitution, mimeType: "image/png", expectedContentLength: 4, textEncodingName: nil)
          ),
          (
            "rsrc://localhost/my%20page.html",
            Resolved(
              outcome: "resolved", path: "Contents/Resources/my page.html", file: root + "my%20page.html",
              layer: main, mimeType: "text/html", expectedContentLength: 12, textEncodingName: "utf-8")
          ),
          (
            "RSRC:///Main.strings?localization=en",
            Resolved(
              outcome: "resolved", path: "Contents/Resources/en.lproj/Main.strings",
              file: root + "en.lproj/Main.strings", layer: main, mimeType: "text/plain",
              expectedContentLength: 14, textEncodingName: "utf-8")
          ),
          (
            "match rsrc:///data",
            Resolved(
              outcome: "resolved", path: "Contents/Resources/data", file: root + "data", layer: main,
              mimeType: "application/octet-stream", expectedContentLength: 2, textEncodingName: nil)
          ),
          (
            "rsrc:///images/",
            Resolved(
              outcome: "resolved", path: "Contents/Resources/images", file: root + "images/", layer: main,
              mimeType: "inode/directory", expectedContentLength: nil, textEncodingName: nil)
          ),
        ]
        for (line, expected) in cases { #expect(try resolved(line, mount) == expected, "\(line)") }
        let keys = [
          "sequence", "time", "url", "outcome", "path", "file", "layer", "mimeType", "expectedContentLength",
          "textEncodingName",
        ]
        let line = try #require(try mount.routesText().lines.first)
        let positions = keys.map { key in
          line.indices.first { line[$0...].hasPrefix("\"\(key)\":") } ?? line.endIndex
        }
        #expect(!positions.contains(line.endIndex))
        #expect(positions == positions.sorted(), "the keys have the documented order")
        #expect(line.hasSuffix(#","textEncodingName":null}"#))
      }
    }

    @Test("the file: URL of a result opens the file", .timeLimit(.minutes(1)))
    func fileURL() throws {
      let bundle = try BundleFixture()
      try bundle.put(["naïve #1?.txt": "odd"], in: bundle.main)
      try withMount(bundle.setup()) { mount in
        let found = try resolved("rsrc:///na%C3%AFve%20%231%3F.txt", mount)
        let outcome = try Command(
          "python3", "-c",
          "import sys, urllib.request; sys.stdout.buffer.write(urllib.request.urlopen(sys.argv[1]).read())",
          found.file
        ).check()
        #expect(outcome.outputText == "odd")
      }
    }

    @Test(
      "invalid and missing resources are rejected with errno and message", .timeLimit(.minutes(1)),
      arguments: [
        ("rsrc:///nosuch.png", "ENOENT", "there is no resource rsrc:///nosuch.png"),
        ("rsrc://host/logo.png", "EINVAL", "no host"),
        ("rsrc:///../logo.png", "EINVAL", "climb"), ("rsrc:///a/%2E%2e/logo.png", "EINVAL", "climb"),
        ("rsrc:///a%2F..%2Flogo.png", "EINVAL", "climb"), ("rsrc:///logo.png%00", "EINVAL", "NUL"),
        ("rsrc:///", "EINVAL", "names no resource"), ("rsrc:", "EINVAL", "names no resource"),
        ("rsrc:///Main.strings?localization=..%2Ffr", "EINVAL", "localization"),
        ("rsrc:///outside", "ENOENT", "no resource"),
        ("match rsrc:///nosuch", "ENOENT", "no resource"),
        ("rsrc:///a b", "EINVAL", "%20"),
      ])
    func refused(line: String, errno: String, words: String) throws {
      let bundle = try BundleFixture()
      try withMount(bundle.setup()) { mount in
        let number: Errno = errno == "ENOENT" ? .noSuchFileOrDirectory : .invalidArgument
        try expectErrno(number) { try mount.writeControl(line) }
        let result = try mount.lastResult()
        #expect(result.summary == "rejected \(errno)")
        #expect(result.error?.contains(words) == true, "\(result.error ?? "")")
      }
    }

    @Test("thousands of lines in one write do not block other requests", .timeLimit(.minutes(1)))
    func manyLines() throws {
      let bundle = try BundleFixture()
      try withMount(bundle.setup()) { mount in
        let writer = try Child(
          Command(
            "python3", "-c",
            """
            import sys
            file = open(sys.argv[1], "wb", 0)
            # The kernel may have cut the write, as at memory that it moves: the rest is written then.
            rest = b"rsrc:///Main.strings\\n" * 6000
            while rest: rest = rest[file.write(rest):]
            """, mount.controlFile.text))
        var lookups = 0
        while writer.status() == nil {
          _ = try (mount.resources / "page.html").status()
          lookups += 1
        }
        #expect(try writer.wait(timeout: 30).status == 0 && lookups > 20)
        let results = try mount.routesText().results
        // A line that the kernel cut is refused, and the program writes it again.
        let refused = results.filter { $0.outcome != "resolved" }
        #expect(refused.allSatisfy { $0.url != "rsrc:///Main.strings" }, "\(refused)")
        #expect((6000..<6010).contains(results.last?.sequence ?? 0), "\(refused)")
      }
    }

    @Test("resources take precedence over routes", .timeLimit(.minutes(1)))
    func precedence() throws {
      let bundle = try BundleFixture()
      try withMount(bundle.setup()) { mount in
        try expectErrno(.fileExists) { try mount.writeControl("route Mine rsrc://*:Path") }
        try mount.writeControl("route Mine *:Path")
        try mount.writeControl("rsrc:///logo.png")
        try expectErrno(.noSuchFileOrDirectory) { try mount.writeControl("rsrc:///nosuch") }
        let summaries = try mount.routesText().summaries
        #expect(summaries == ["rejected EEXIST", "applied", "resolved", "rejected ENOENT"])
      }
    }
  }
}
