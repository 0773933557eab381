import Testing

@testable import bundlefs

/// The command line of `bundlefs ui`.
@Suite struct UIArgumentsTests {
  private func arguments(_ words: String...) throws -> UIArguments {
    try UIArguments(words.map { Array($0.utf8) })
  }

  private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

  @Test("mounts that are there, or one that is made")
  func subjects() throws {
    #expect(try arguments("a", "--no-open", "b").subject == .mounts([bytes("a"), bytes("b")]))
    let own = try arguments("-o", "cache=none", "App", "-osubstitution=x", "--port", "80")
    #expect(
      own.subject == .ownMount(main: bytes("App"), options: [bytes("cache=none"), bytes("substitution=x")]))
    #expect(own.port == 80 && own.opensBrowser)
  }

  @Test(
    "wrong usage is named",
    arguments: [
      ([], "MOUNTPOINT"), (["a", "-o"], "'-o'"), (["a", "b", "-o", "ro"], "'b'"),
      (["a", "-o", "cash=1"], "cash"),
      (["a", "-o", "remount"], "remount"), (["a", "-o", "writable"], "writable"),
      (["a", "--port", "0"], "--port"),
      (["a", "--frob"], "--frob"), (["-o", "ro"], "MOUNTPOINT"),
    ])
  func wrong(words: [String], naming: String) throws {
    let failure = try #require(throws: Failure.self) { try UIArguments(words.map { Array($0.utf8) }) }
    #expect(failure.status == 2 && failure.message.contains(naming), "\(failure.message)")
  }
}
