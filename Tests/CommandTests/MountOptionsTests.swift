import Bundles
import Testing
import Volume

@testable import bundlefs

@Suite struct MountOptionsTests {
  private func read(_ list: String) throws -> MountOptions {
    var options = MountOptions()
    try options.read(Array(list.utf8))
    return options
  }

  @Test("substitutions are separated by colons and accumulate in order")
  func substitutions() throws {
    #expect(try read("substitution=a:b").substitutions.map(\.shown) == ["a", "b"])
    #expect(try read("substitution=a,ro,substitution=b").substitutions.map(\.shown) == ["a", "b"])
  }

  @Test("an empty substitution= is none, as 'layers set' takes it")
  func noSubstitution() throws {
    let options = try read("substitution=")
    #expect(options.substitutions.isEmpty && options.substitutionLists == [[]])
    #expect(try read("substitution=a,substitution=").substitutions.map(\.shown) == ["a"])
  }

  @Test(
    "a backslash escapes a comma, a colon and a backslash only",
    arguments: [
      (#"substitution=a\,b"#, ["a,b"]), (#"substitution=a\:b:c"#, ["a:b", "c"]),
      (#"substitution=a\\:b"#, [#"a\"#, "b"]), (#"substitution=a\nb"#, [#"a\nb"#]),
      (#"substitution=a\"#, [#"a\"#]), (#"substitution=a\\\,b"#, [#"a\,b"#]),
    ])
  func escapes(list: String, expected: [String]) throws {
    #expect(try read(list).substitutions.map(\.shown) == expected)
  }

  @Test("the control file's name must differ from the resource directory's")
  func nameConflict() throws {
    for list in ["control=rsrc:", "control=x:,resource_scheme=X"] {
      let failure = try #require(throws: Failure.self) { try read(list).check() }
      #expect(failure.status == 2 && failure.message.contains("control="))
    }
    try read("control=rsrc:,resource_scheme=x").check()
  }

  @Test("parses the options of the resource lookup")
  func resources() throws {
    let settings = try read("languages=fr-CA:en,scale=3,idiom=pad,resource_scheme=App+Res").resources
    #expect(settings.lookup.languages?.map(\.shown) == ["fr-CA", "en"])
    #expect(settings.lookup.scale == 3 && settings.lookup.idiom == .pad && settings.scheme == "app+res")
    let defaults = try read("idiom=phone").resources
    #expect(
      defaults.lookup.languages == nil && defaults.lookup.scale == nil && defaults.lookup.idiom == .phone)
    #expect(defaults.scheme == "rsrc")
  }

  @Test("the watchdog takes seconds, or none")
  func watchdog() throws {
    #expect(try read("").watchdog == 30_000 && read("watchdog=1.5").watchdog == 1500)
    #expect(try read("watchdog=off").watchdog == nil && read("watchdog=0").watchdog == nil)
    #expect(try read("watchdog=60").shown["watchdog"] == "60")
    #expect(try read("watchdog=0").shown["watchdog"] == "off")
    for list in ["watchdog", "watchdog=", "watchdog=0.5", "watchdog=-1", "watchdog=nan", "watchdog=1e9"] {
      #expect(throws: Failure.self, "\(list)") { try read(list) }
    }
  }

  @Test("directory names need not be UTF-8")
  func bytes() throws {
    var options = MountOptions()
    try options.read(Array("substitution=".utf8) + [0xFF, 0x41])
    #expect(options.substitutions == [[0xFF, 0x41]])
  }

  @Test("passes on options of libfuse and the kernel, ignores those of fstab")
  func passing() throws {
    let options = try read("rw,allow_other,nosuid,x-systemd.automount,_netdev,user=me,max_read=8192,,ro")
    #expect(options.passed.map(\.shown) == ["allow_other", "nosuid", "ro"])
    #expect(options.maxRead == 8192)
  }

  @Test(
    "the error for an invalid option names it",
    arguments: [
      "frobnicate", "frobnicate=1", "substitution", "substitution=:", "substitution=a::b", "xattr",
      "xattr=maybe", "xattr=list", "announce", "announce=maybe",
      "max_read=many", "max_read=1", "cache=forever", "archive_encoding", "archive_encoding=klingon",
      "archive_password_file=", "http_cache=", "http_headers_file=", "http_cache_size=many", "http_refresh=0",
      "http_refresh",
      "owners", "owners=root", "uid", "uid=", "uid=-1", "uid=+1", "uid=4294967295", "uid=root", "gid=1.5",
      "umask=8", "umask=7777", "squash_to_root=1", "squash_to_uid=x", "uidmapping", "uidmapping=",
      "uidmapping=1:2", "uidmapping=1:2:3:4", "uidmapping=1:2:0", "uidmapping=1::3",
      "gidmapping=1:2:4294967295",
      "allow_other=1", "trust_upper=1", "trust_upper=",
      "routes", "routes=", "control", "control=", "control=.", "control=..", "control=a/b",
      "control=\(String(repeating: "n", count: 256))",
      "routes_mode", "routes_mode=", "routes_mode=8", "routes_mode=rw", "routes_mode=1000",
      "routes_mode=-1", "hide_routes=1", "hide_routes=", "list_routes=1",
      "languages", "languages=", "languages=fr::en", "languages=a/b", "scale", "scale=0", "scale=-1",
      "scale=1.5",
      "scale=9999999999999999999", "idiom", "idiom=tv", "resource_scheme", "resource_scheme=",
      "resource_scheme=1a",
      "resource_scheme=a:b", "resource_scheme=BundleFS",
    ])
  func refusal(option: String) throws {
    let failure = try #require(throws: Failure.self) { try read("ro,\(option)") }
    #expect(failure.status == 2)
    #expect(failure.message.contains(option))
    #expect(!failure.message.contains("\n"))
  }

  @Test("what is shown of owners has one form, and one option for each")
  func owners() throws {
    let options = try read("uid=007,gidmapping=0:100:5:7:8:9,umask=0022")
    #expect(options.shown["uid"] == "7" && options.shown["gidmapping"] == "0:100:5:7:8:9")
    #expect(options.shown["umask"] == "22" && options.shown["owners"] == "mounter")
    #expect(try read("ro").owners.shown == nil && read("owners=archive").owners.shown == nil)
    #expect(try read("uid=5,uid=6").owners.shown?.users == .constant(6))
    #expect(try read("umask=0").owners.shown == ShownOwners())
    for list in [
      "uid=1,uidmapping=1:2:3", "gid=1,squash_to_root", "uid=1,writable=x", "umask=7,strings=merge",
    ] {
      let failure = try #require(throws: Failure.self) { try read(list).check() }
      #expect(failure.status == 2 && failure.message.contains("cannot be combined"))
    }
  }

  @Test("routes files keep their order; a backslash escapes a comma in a name")
  func routes() throws {
    let options = try read(#"routes=b,ro,routes=/x/a\,c:d"#)
    #expect(options.routes.map(\.shown) == ["b", "/x/a,c:d"])
    #expect(try read("ro").routes.isEmpty)
  }

  @Test("low_latency is off unless given, and takes no value")
  func lowLatency() throws {
    #expect(try !read("ro").lowLatency)
    #expect(try read("low_latency").lowLatency)
    #expect(throws: Failure.self) { try read("low_latency=on") }
  }

  @Test("changes are announced unless the mount is read-only or not coherent")
  func announcing() throws {
    #expect(try read("").announceMode == .on)
    #expect(try read("announce=on,cache=coherent").announceMode == .on)
    #expect(try read("announce=off,ro").announceMode == .off)
    for list in ["ro", "cache=none", "announce=on,cache=5"] {
      guard case .unavailable = try read(list).announceMode else {
        Issue.record("\(list)")
        continue
      }
    }
  }

  @Test("parses the control file's name, mode and visibility")
  func control() throws {
    let plain = try read("").control
    #expect(plain.name.shown == ".routes" && plain.mode == 0o600 && !plain.isListed)
    let chosen = try read(#"control=a\,b c,routes_mode=0664,list_routes"#).control
    #expect(chosen.name.shown == "a,b c" && chosen.mode == 0o664 && chosen.isListed)
    #expect(try !read("hide_routes").control.isListed)
    #expect(try read("control=none").control.name.isEmpty)
    let longest = String(repeating: "n", count: 255)
    #expect(try read("control=\(longest),routes_mode=0").control.name.shown == longest)
    #expect(try read("routes_mode=0").control.mode == 0)
    #expect(try read("control=x,control=y").control.name.shown == "y")
  }

  @Test("accepts mount(8)'s helper flags only as a mount helper")
  func helperFlags() throws {
    func arguments(_ words: String...) throws -> MountArguments {
      try MountArguments(words.map { Array($0.utf8) })
    }
    let helper = try arguments(
      "/sbin/mount.bundlefs", "main", "point", "-sn", "-f", "-o", "rw", "-t", "bundlefs")
    #expect(helper.isDryRun && !helper.isForeground && helper.mountPoint.shown == "point")
    let plain = try arguments("bundlefs", "-f", "main", "-oro", "--", "-point")
    #expect(!plain.isDryRun && plain.isForeground && plain.mountPoint.shown == "-point")
    #expect(throws: Failure.self) { try arguments("bundlefs", "-s", "main", "point") }
  }
}
