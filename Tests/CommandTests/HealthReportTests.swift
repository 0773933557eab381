import Posix
import Routing
import Testing

@testable import bundlefs

/// What `bundlefs health` makes of a status, and how a path leads to a mount.
@Suite struct HealthReportTests {
  private func reasons(_ members: String, layer: String = #""reason":null"#) throws -> [String] {
    let layers = #"[{"path":"/m","encodedPath":"/m","kind":"directory",\#(layer)}]"#
    let json = #"{"layers":\#(layers)\#(members.isEmpty ? "" : "," + members)}"#
    return HealthReport.reasons(try #require(JSONValue(Array(json.utf8))))
  }

  @Test("a status without faults has no reasons")
  func healthy() throws {
    #expect(try reasons("") == [])
    let more = #"""
      "fallbacks":[],"strings":null,"bundle":{"reason":null},"survival":{"restarts":9,"recentRestarts":2,"cause":"signal 9"}
      """#
    #expect(try reasons(more) == [])
  }

  @Test("layers, directories, tables, the bundle and restarts are reasons")
  func degraded() throws {
    #expect(try reasons("", layer: #""reason":"it is gone","absent":true"#) == ["/m: it is gone"])
    #expect(try reasons("", layer: #""unresponsive":3"#) == ["/m: does not answer, since 3 s"])
    #expect(
      try reasons("", layer: #""overlayReferences":2"#) == ["/m: entries that only overlayfs can read: 2"])
    #expect(
      try reasons(
        #""fallbacks":[{"layer":"/m","reason":"no watch"},{"layer":"/m","reason":"no watch"},{"layer":"/n","reason":"x"}]"#
      ) == [
        "directories cached for 1 s only: 2 (/m: no watch)", "directories cached for 1 s only: 1 (/n: x)",
      ])
    #expect(
      try reasons(#""strings":{"unmerged":[{}]}"#) == ["tables of strings that cannot be merged: 1"])
    #expect(try reasons(#""bundle":{"reason":"no"}"#) == ["the bundle is unreadable: no"])
    #expect(
      try reasons(#""survival":{"recentRestarts":3,"cause":"signal 11"}"#) == [
        "its worker process was restarted 3 times within 10 minutes, the last time after signal 11"
      ])
    let other = try #require(JSONValue(Array("{}".utf8)))
    #expect(HealthReport.reasons(other) == ["its daemon does not report its layers"])
  }

  @Test("prints one line, or one for each of several reasons")
  func output() throws {
    let report = HealthReport(dead: Array("/a\u{1B}".utf8), "no bundlefs is mounted there")
    #expect(report.text == #"/a\x1B: dead: no bundlefs is mounted there"#)
    #expect(report.state.rawValue == 2)
    var json = JSONWriter()
    report.write(to: &json)
    #expect(
      json.text
        == #"{"mountPoint":"/a\u001b","encodedMountPoint":"/a%1B","state":"dead","reasons":["no bundlefs is mounted there"]}"#
    )
  }

  @Test("refuses arguments that it does not know")
  func usage() throws {
    for words in [[], ["--json"], ["--all", "/mnt"], ["--al"], ["/mnt", "--count"], [""]] {
      let failure = try #require(throws: Failure.self, "\(words)") {
        try HealthCommand(words.map { Array($0.utf8) })
      }
      #expect(failure.status == 2)
    }
  }

  // MARK: - The mount of a path

  private static let mounts = [
    "20 1 8:1 / / rw - ext4 /dev/sda rw",
    "30 20 0:40 / /data/mnt rw - fuse.bundlefs main rw,user_id=0,group_id=0",
    "31 30 0:41 / /data/mnt/inner rw - tmpfs none rw",
    "32 20 0:42 / /cov rw - fuse.bundlefs main rw,user_id=0",
    "33 32 0:43 / /cov rw - tmpfs none rw",
  ].compactMap { MountTableEntry(line: Array($0.utf8)[...]) }

  /// Resolves a path where only these links are.
  private func resolve(_ path: String) throws -> String {
    let links = ["/link": "data", "/data/up": "../data/mnt/sub", "/loop": "/loop"]
    return try MountSearch.resolve(Array(path.utf8), from: Array("/data/mnt/sub".utf8), in: Self.mounts) {
      path throws(Errno) in
      // Within the mount, nothing may be asked.
      if path.starts(with: "/data/mnt".utf8), !path.starts(with: "/data/mnt/inner".utf8) {
        Issue.record("asked for \(path.shown)")
      }
      return links[path.shown].map { Array($0.utf8) }
    }.shown
  }

  @Test(
    "links are followed up to the mount, and not within it",
    arguments: [
      ("/data/mnt", "/data/mnt"), ("/link/mnt/a/b", "/data/mnt/a/b"), ("/data/up", "/data/mnt/sub"),
      (".", "/data/mnt/sub"), ("x/../..", "/data/mnt"), ("../../..", "/"), ("/data//./mnt/", "/data/mnt"),
      ("../inner/x", "/data/mnt/inner/x"), ("/../..", "/"),
    ])
  func resolving(path: String, expected: String) throws { #expect(try resolve(path) == expected) }

  @Test("a loop of links is an error")
  func loop() {
    #expect(throws: Errno.tooManySymbolicLinkLevels) { try resolve("/loop/x") }
  }

  @Test("the innermost mount counts; a covered one is found at its mount point's path")
  func mounts() {
    func found(_ path: String) -> UInt64? {
      MountSearch.mount(containing: Array(path.utf8), in: Self.mounts)?.device
    }
    let (mounted, covered) = (Self.mounts[1].device, Self.mounts[3].device)
    #expect(found("/data/mnt") == mounted && found("/data/mnt/a") == mounted)
    #expect(found("/data/mnt/inner/a") == nil && found("/data") == nil && found("/data/mntx") == nil)
    #expect(found("/cov") == covered)
  }
}
