import Testing

@testable import bundlefs

/// The command line of `bundlefs layers`.
@Suite struct LayersArgumentsTests {
  private func action(_ words: String...) throws -> LayersArguments.Action {
    let arguments = try LayersArguments(["mnt"].map { Array($0.utf8) } + words.map { Array($0.utf8) })
    #expect(arguments.mountPoint.shown == "mnt")
    return arguments.action
  }

  private func bytes(_ names: String...) -> [[UInt8]] { names.map { Array($0.utf8) } }
  private func bytes(_ name: String) -> [UInt8] { Array(name.utf8) }

  @Test("without a command it lists")
  func list() throws {
    #expect(try action() == .list(isJSON: false, counts: false))
    #expect(try action("--json") == .list(isJSON: true, counts: false))
    #expect(try action("--count", "--json") == .list(isJSON: true, counts: true))
  }

  @Test("set takes the syntax of the option, and nothing for MAIN alone")
  func set() throws {
    #expect(try action("set", #"a:b\:c:d\,e,f"#) == .set(bytes("a", "b:c", "d,e,f")))
    #expect(try action("set", #"a\\:b"#) == .set(bytes(#"a\"#, "b")))
    #expect(try action("set", "") == .set([]))
  }

  @Test("add takes layers and a position in any order")
  func add() throws {
    #expect(try action("add", "a:b", "c") == .add(bytes("a:b", "c"), .top))
    #expect(try action("add", "--below", "x", "a") == .add(bytes("a"), .below(bytes("x"))))
    #expect(try action("add", "a", "--bottom", "b") == .add(bytes("a", "b"), .bottom))
    #expect(try action("add", "--bottom", "--", "--top") == .add(bytes("--top"), .bottom))
  }

  @Test("remove and move take layers")
  func others() throws {
    #expect(try action("remove", "a", "b") == .remove(bytes("a", "b")))
    #expect(try action("move", "a", "--above", "b") == .move(bytes("a"), .above(bytes("b"))))
    #expect(try action("move", "--top", "a") == .move(bytes("a"), .top))
  }

  @Test(
    "wrong usage is one line that names the error",
    arguments: [
      (["frobnicate"], "frobnicate"), (["--frob"], "--frob"), (["--top"], "position"), (["set"], "set"),
      (["set", "a", "b"], "set"), (["set", "a::b"], "a::b"), (["set", "a", "--top"], "no position"),
      (["add"], "at least one"), (["add", ""], "empty"), (["add", "a", "--above"], "--above"),
      (["add", "a", "--top", "--bottom"], "--bottom"), (["remove"], "at least one"),
      (["remove", "a", "--top"], "no position"), (["move", "a"], "needs a position"),
      (["move", "--top"], "one LAYER"), (["move", "a", "b", "--top"], "one LAYER"),
      (["add", "a", "--json"], "--json"), (["remove", "a", "--count"], "--count"),
    ])
  func wrong(words: [String], naming: String) throws {
    let failure = try #require(throws: Failure.self) {
      try LayersArguments((["mnt"] + words).map { Array($0.utf8) })
    }
    #expect(failure.status == 2 && failure.message.contains(naming), "\(failure.message)")
    #expect(!failure.message.contains("\n"))
  }

  @Test("the mount point may not be missing")
  func noMountPoint() throws {
    let failure = try #require(throws: Failure.self) { try LayersArguments([]) }
    #expect(failure.status == 2 && failure.message.contains("MOUNTPOINT"))
  }
}
