import Posix
import TestSupport
import Testing

/// A mount option with a value, and a check that shows that it holds.
struct OptionOnTrial: Sendable, CustomTestStringConvertible {
  /// As the manual names it.
  let text: String
  /// As `-o` takes it.
  let argument: @Sendable (OptionTree) -> ByteString
  let check: @Sendable (OptionTrial) throws -> Void

  init(
    _ text: String, _ argument: @escaping @Sendable (OptionTree) -> ByteString,
    _ check: @escaping @Sendable (OptionTrial) throws -> Void
  ) {
    (self.text, self.argument, self.check) = (text, argument, check)
  }

  /// An option that is given as the manual names it.
  init(_ text: String, _ check: @escaping @Sendable (OptionTrial) throws -> Void) {
    self.init(text, { _ in ByteString(text) }, check)
  }

  /// The option without its value: two values of one option do not make a pair.
  var name: Substring { text.prefix { $0 != "=" } }

  var testDescription: String { text }

  static let all = writing + reading + views + owners + processes + control
}

extension OptionOnTrial {
  private static let writing: [OptionOnTrial] = [
    OptionOnTrial("writable") { try $0.expectWrites(into: $0.tree.top) },
    OptionOnTrial("writable=DIR", { "writable=" + MountSetup.escaped($0.upper) }) {
      try $0.expectWrites(into: $0.tree.upper)
    },
    OptionOnTrial("whiteouts=markers") { try $0.expectStatus { $0.options["whiteouts"] == "markers" } },
    OptionOnTrial("rename_copy=SIZE", { _ in "rename_copy=16M" }) {
      try $0.expectStatus { $0.options["rename_copy"] == "16777216" }
    },
    OptionOnTrial("workdir=DIR", { "workdir=" + MountSetup.escaped($0.work) }) { trial in
      try trial.expectStatus { $0.options["workdir"] == trial.tree.work.text }
      let isUsed = try !trial.tree.work.names().isEmpty
      if trial.mount != nil {
        #expect(isUsed == (trial.has("writable") || trial.has("writable=DIR")))
      }
    },
    OptionOnTrial("trust_upper") { try $0.expectStatus { $0.options["trust_upper"] == "on" } },
    OptionOnTrial("ro") { trial in
      try expectErrno(.readOnlyFileSystem) { try (trial.view / "refused.txt").write("") }
    },
  ]

  private static let reading: [OptionOnTrial] = [
    OptionOnTrial("passthrough") { trial in
      try trial.expectText(trial.tree.large, in: "large.bin")
      try trial.expectStatus { $0.passthrough?.smallest == 128 << 10 && $0.passthrough?.reason == nil }
    },
    OptionOnTrial("cache=none") { trial in
      // Without a cache, a change is visible to the very next access.
      try (trial.tree.top / "both.txt").replace("seen at once in round \(trial.round)\n")
      try trial.expectText("seen at once in round \(trial.round)\n", in: "both.txt")
      try trial.expectStatus { $0.cache == "none" }
    },
    OptionOnTrial("cache=SECONDS", { _ in "cache=1" }) { try $0.expectStatus { $0.cache == "1" } },
    OptionOnTrial("cache_size=BYTES", { _ in "cache_size=16M" }) {
      try $0.expectStatus { $0.options["cache_size"] == "16777216" }
    },
    OptionOnTrial("http_cache=DIR", { "http_cache=" + MountSetup.escaped($0.folder / "http") }) { trial in
      // Nothing is made without a URL.
      #expect(!(trial.tree.folder / "http").exists)
      try trial.expectStatus { $0.options["http_cache"]?.hasSuffix("/http") == true }
    },
    OptionOnTrial("http_cache_size=BYTES", { _ in "http_cache_size=16M" }) {
      try $0.expectStatus { $0.options["http_cache_size"] == "16777216" }
    },
    OptionOnTrial(
      "http_headers_file=FILE",
      {
        try? ($0.folder / "headers").write("X-Token: hidden\n")
        return "http_headers_file=" + MountSetup.escaped($0.folder / "headers")
      }
    ) { trial in
      try trial.expectStatus { $0.options["http_headers_file"]?.hasSuffix("/headers") == true }
    },
    OptionOnTrial("http_refresh=SECONDS", { _ in "http_refresh=5" }) {
      try $0.expectStatus { $0.options["http_refresh"] == "5" }
    },
    OptionOnTrial("max_read=N", { _ in "max_read=65536" }) {
      try $0.expectText($0.tree.large, in: "large.bin")
    },
    OptionOnTrial("layer_timeout=SECONDS", { _ in "layer_timeout=20" }) {
      try $0.expectStatus { $0.options["layer_timeout"] == "20000" }
    },
    OptionOnTrial("layer_timeout_action=skip") {
      try $0.expectStatus { $0.options["layer_timeout_action"] == "skip" }
    },
  ]

  private static let views: [OptionOnTrial] = [
    OptionOnTrial("case=insensitive") { trial in
      try trial.expectText("main's inner\n", in: "FOLDER/inner.TXT")
      #expect(try (trial.view / "folder").names() == ["Inner.txt"])
    },
    OptionOnTrial("strings=merge") { trial in
      let table = try (trial.view / "en.lproj/T.strings").readText()
      let isMerged = table.contains(#""key" = "top";"#) && table.contains(#""other" = "main";"#)
      #expect(isMerged, "\(table)")
    },
    OptionOnTrial("hide=GLOB", { _ in "hide=*.bak" }) { trial in
      #expect(!(trial.view / "hidden.bak").exists)
      let names = try trial.view.names()
      #expect(!names.contains("hidden.bak"))
    },
    OptionOnTrial("log=FILE", { "log=" + MountSetup.escaped($0.folder / "daemon.log") }) {
      try $0.expectStatus { $0.log == "file" }
    },
    OptionOnTrial("mtime=visible") { trial in
      let (old, start) = (trial.tree.folder / "old", TimeSpec.now)
      _ = try (trial.view / "both.txt").status()
      try old.write("old in round \(trial.round)\n")
      try old.setModified(TimeSpec(seconds: 1_000_000_000, nanoseconds: 0))
      try old.rename(to: trial.tree.top / "both.txt")
      try trial.expectEventually("old in round \(trial.round)\n", in: "both.txt")
      let shown = try (trial.view / "both.txt").status().modified
      #expect(shown > start, "\(shown)")
    },
    OptionOnTrial("missing=empty", { "missing=empty,substitution=" + MountSetup.escaped($0.absent) }) {
      trial in
      let late = ByteString("late\(trial.round).txt")
      if !trial.tree.absent.exists { try trial.tree.absent.makeDirectory() }
      try (trial.tree.absent / late).write("late\n")
      try trial.expectEventually("late\n", in: late)
    },
    OptionOnTrial("an archive", { "substitution=" + MountSetup.escaped($0.archive) }) {
      try $0.expectText("packed\n", in: "packed.txt")
    },
    OptionOnTrial("a layer at a folder", { "substitution=" + MountSetup.escaped($0.laid) + "@/Laid/Folder" })
    {
      try $0.expectText("laid\n", in: "Laid/Folder/laid.txt")
      try $0.expectText("main's inner\n", in: "Folder/Inner.txt")
    },
    OptionOnTrial("profile=NAME", { _ in "profile=trial" }) { trial in
      try trial.expectText("saved\n", in: "saved.txt")
      try trial.expectStatus { $0.options["scale"] == "3" }
    },
    OptionOnTrial("xattr=off") { trial in
      #expect((try? (trial.view / "both.txt").attribute("user.bundlefs.layer")) == nil)
    },
    OptionOnTrial("xattr=layers") { trial in
      for name in ["user.bundlefs.layer", "user.mime_type"] as [ByteString] {
        try expectErrno(.noData) { _ = try (trial.view / "both.txt").attribute(name) }
      }
    },
    OptionOnTrial("xattr=listed") { trial in
      let names = try (trial.view / "both.txt").attributeNames()
      #expect(names.contains("user.bundlefs.layer"))
    },
  ]

  /// What `stat` shows of a file of root's with the mode 0644.
  private static func showing(_ text: String, _ argument: String, _ expected: [UInt32]) -> OptionOnTrial {
    OptionOnTrial(text, { _ in ByteString(argument) }) { trial in
      let status = try (trial.view / "plain.txt").status()
      for (found, expected) in zip([status.owner, status.group, status.permissions], expected)
      where expected != .max {
        #expect(found == expected, "\(argument)")
      }
    }
  }

  private static let owners: [OptionOnTrial] = [
    OptionOnTrial("owners=archive") { try $0.expectStatus { $0.options["owners"] == "archive" } },
    showing("uid=N", "uid=7", [7]), showing("gid=N", "gid=8", [.max, 8]),
    showing("umask=OCTAL", "umask=200", [.max, .max, 0o444]),
    showing("uidmapping=MAP", "uidmapping=0:7:1", [7]),
    showing("gidmapping=MAP", "gidmapping=0:8:1", [.max, 8]),
    showing("squash_to_uid=N", "squash_to_uid=7", [7]),
    showing("squash_to_gid=N", "squash_to_gid=8", [.max, 8]),
    showing("squash_to_root", "squash_to_root", [0, 0]),
  ]

  private static let processes: [OptionOnTrial] = [
    OptionOnTrial("announce=off") { try $0.expectStatus { !$0.announce.on } },
    OptionOnTrial("announce=on") { trial in
      let isOff = ["ro", "cache=none", "cache=SECONDS"].contains(where: trial.has)
      try trial.expectStatus { $0.announce.on == !isOff && ($0.announce.reason != nil) == isOff }
    },
    OptionOnTrial("survive=off") { trial in
      #expect(trial.mount.map { $0.worker == $0.process.pid } ?? true)
    },
    OptionOnTrial("survive=on") { trial in
      if trial.round > 0 { return }
      try trial.mount?.killWorker()
      var next = trial
      next.round += 1
      try next.expectAll()
    },
    OptionOnTrial("watchdog=off") { try $0.expectStatus { $0.options["watchdog"] == "off" } },
    OptionOnTrial("low_latency") { try $0.expectStatus { $0.options["low_latency"] == "on" } },
    OptionOnTrial("allow_other") { trial in
      if trial.mount == nil { return }
      let outcome = try Command(["cat", trial.view / "Folder/Inner.txt"]).asUser(65534).run(timeout: 30)
      #expect(outcome.outputText == "main's inner\n", "\(outcome.errorText)")
    },
  ]

  private static let control: [OptionOnTrial] = [
    OptionOnTrial("control=none") { #expect(!($0.view / ".routes").exists) },
    OptionOnTrial("list_routes") { trial in
      let names = try trial.view.names()
      #expect(names.contains(".routes") != trial.has("control=none"))
    },
    OptionOnTrial("routes=FILE", { "routes=" + MountSetup.escaped($0.routes) }) { trial in
      if trial.has("control=none") { return }
      let text = try (trial.view / ".routes").readText()
      #expect(text.hasPrefix("route Known l:(known)Word\n"))
    },
    OptionOnTrial("resource_scheme=NAME", { _ in "resource_scheme=app" }) {
      try $0.expectStatus { $0.options["resource_scheme"] == "app" }
    },
    OptionOnTrial("resource_scheme=none") { trial in
      #expect(!(trial.view / "rsrc:").exists && !(trial.view / ":").exists)
      try trial.expectStatus { $0.options["resource_scheme"] == "none" }
    },
    OptionOnTrial("languages=LANG", { _ in "languages=en" }) {
      try $0.expectStatus { $0.options["languages"] == "en" }
    },
    OptionOnTrial("results=N", { _ in "results=2" }) { try $0.expectStatus { $0.options["results"] == "2" } },
  ]
}
