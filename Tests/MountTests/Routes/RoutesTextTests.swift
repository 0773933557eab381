import Posix
import TestSupport
import Testing

/// The content of the control file.
extension MountTests {
  @Suite struct RoutesTextTests {
    @Test("routes come first, then results numbered from 1", .timeLimit(.minutes(1)))
    func order() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        #expect(try mount.controlFile.read() == [])
        #expect(try mount.controlFile.status().size == 0)
        try mount.writeControl(
          "route  B /s:Text/i:Count\nx://a/1\nroute A  l:(a)Text/s:Other\nx://a/b\nx://a/2\n")
        let text = try mount.routesText()
        #expect(text.routes == ["route B s:Text/i:Count", "route A l:(a)Text/s:Other"])
        #expect(text.summaries == ["applied", "posted B", "applied", "posted A", "posted B"])
        #expect(text.results.map(\.sequence) == [1, 2, 3, 4, 5])
        #expect(text.results[2].overlaps == ["B"] && text.results[0].overlaps == nil)
        #expect(text.lines[1].contains(#""userInfo":{"Count":1,"Text":"a"},"#), "\(text.lines[1])")
        // Timestamps are in UTC and do not decrease.
        let times = text.results.map(\.time)
        #expect(times == times.sorted() && times.allSatisfy { $0.count == 24 && $0.hasSuffix("Z") })
      }
    }

    @Test("match posts nothing; unroute and reset remove", .timeLimit(.minutes(1)))
    func commands() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        try mount.writeControl("route A i:A\nroute B f:B\nroute A s:A/s:B\nmatch x:1\nmatch x:1.5\n")
        #expect(try mount.routesText().summaries.suffix(2) == ["matched A", "matched B"])
        try mount.writeControl("unroute A\nmatch x:1\nx:2\n")
        #expect(try mount.routesText().routes == ["route B f:B"])
        #expect(try mount.routesText().summaries.suffix(3) == ["applied", "matched B", "posted B"])
        try mount.writeControl("reset\n")
        #expect(try mount.routesText().routes == [])
        try expectErrno(.noSuchFileOrDirectory) { try mount.writeControl("x:2\n") }
        try mount.writeControl("reset\nroute C i:C\nx:3\n")
        #expect(try mount.routesText().summaries.suffix(3) == ["applied", "applied", "posted C"])
        #expect(try mount.routesText().results.map(\.sequence) == Array(1...13))
      }
    }

    @Test("results include the unbound query and fragment", .timeLimit(.minutes(1)))
    func unboundParts() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        try mount.writeControl(
          "route A app://s:Place?page=i?:Page\nAPP://home?page=3&sort=name#top\napp://a%2Fb\n")
        let results = try mount.routesText().results
        #expect(results[1].userInfo == ["Place": .text("home"), "Page": .number(3)])
        #expect(results[1].query == "sort=name" && results[1].fragment == "top")
        #expect(results[2].userInfo == ["Place": .text("a/b")])
        #expect(results[2].query == nil && results[2].fragment == nil)
      }
    }

    @Test("the last 1,024 results are kept", .timeLimit(.minutes(1)))
    func manyResults() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        try mount.writeControl("route A i:A\n" + (2...3000).map { "x:\($0)\n" }.joined())
        let text = try mount.routesText()
        #expect(text.results.count == 1024)
        #expect(text.results.first?.sequence == 1977 && text.results.last?.sequence == 3000)
        #expect(text.results.allSatisfy { $0.url == "x:\($0.sequence)" })
        #expect(text.routes == ["route A i:A"])
      }
    }

    @Test("the last MiB of long results are kept", .timeLimit(.minutes(1)))
    func longResults() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        try mount.writeControl("route A s:A\n")
        let long = String(repeating: "a", count: 30_000)
        for number in 2...30 { try mount.writeControl("x:\(long)\(number)\n") }
        let text = try mount.routesText()
        // Each result has the URL and its binding: 60,000 bytes.
        #expect(text.results.map(\.sequence) == Array(14...30))
        // Every quotation mark takes two bytes in JSON.
        try mount.writeControl("x:\(String(repeating: "\"", count: 65_000))\n")
        let last = try mount.routesText()
        #expect(
          last.results.map(\.sequence) == Array(18...31) && last.lines[13].utf8.count > 256 * 1024 - 10_000)
      }
    }

    @Test("a result is visible to every reader at once", .timeLimit(.minutes(1)))
    func visible() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        try mount.writeControl("route A i:A\n")
        try mount.controlFile.withOpen(0) { file in
          for number in 1...200 {
            let before = try mount.controlFile.status()
            try mount.writeControl("x:\(number)\n")
            let after = try mount.controlFile.status()
            #expect(after.size > before.size && after.modified > before.modified)
            #expect(try ByteString.status(of: file).size == after.size)
            // Reads from the previous end of the file with a descriptor opened before.
            var tail = [UInt8](repeating: 0, count: 4096)
            let count = try ByteString.readPart(&tail, of: file, at: before.size)
            #expect(try RoutedResult(String(decoding: tail[..<count], as: UTF8.self)).url == "x:\(number)")
          }
        }
        for number in 201...220 {
          try mount.writeControl("x:\(number)\n")
          let last = try Command("tail", "-n", "1", mount.controlFile.text).check().outputText
          #expect(try RoutedResult(last).url == "x:\(number)")
        }
      }
    }

    @Test("a reader at the end of the file gets results as they appear", .timeLimit(.minutes(1)))
    func following() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        let script = #"""
          import json, os
          w = os.open(path, os.O_WRONLY)
          os.write(w, b"route A i:A\n")
          f = open(path, "rb", buffering=0)
          f.read()
          for n in range(300):
              os.write(w, b"x:%d\n" % n)
              line = f.read()
              if json.loads(line)["url"] != "x:%d" % n or f.read() != b"":
                  print(line)
          print("done")
          """#
        // The first read ends after the table and the first result, whose offsets stay.
        try mount.expectPython(script, prints: "done")
      }
    }

    @Test(
      "a route is put before another, and a route that built-in URLs hide is refused", .timeLimit(.minutes(1))
    )
    func before() throws {
      try withMount(routes: "route All *:A\n") { mount in
        try mount.writeControl("route Dog l:(dog)A before All\nx:dog\nX://h:80/a\n")
        let text = try mount.routesText()
        #expect(text.routes == ["route Dog l:(dog)A", "route All *:A"])
        #expect(text.results[1].overlaps == ["All"] && text.results[1].overlapCount == 1)
        #expect(text.summaries.suffix(2) == ["posted Dog", "posted All"])
        #expect(text.results.suffix(2).map(\.scheme) == ["x", "x"])
        #expect(text.results.suffix(2).map(\.port) == [nil, 80])
        for line in ["route Dead rsrc://*:A", "route Dead bundlefs://s:A", "route B **:B before Dog"] {
          try expectErrno(.fileExists) { try mount.writeControl(line + "\n") }
        }
        try expectErrno(.noSuchFileOrDirectory) { try mount.writeControl("route C i:C before None\n") }
      }
    }
  }
}
