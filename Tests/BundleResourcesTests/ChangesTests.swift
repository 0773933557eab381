import BundleResources
import Foundation
import Posix
import TestSupport
import Testing

/// The changes of a bundle as an asynchronous sequence.
@Suite(.serialized) struct ChangesTests {
  private func fixture() throws -> ResourceFixture {
    let fixture = try ResourceFixture()
    try fixture.make("fr.lproj/a.txt", "main")
    try fixture.make("b.txt", "main")
    return fixture
  }

  /// Waits until the changes since the last call contain a path or a directory above it, or anything may have changed.
  private func wait(for path: String, _ changes: inout BundleChanges.Iterator) async throws {
    while let change = try await changes.next() {
      guard let paths = change.paths else { return }
      if paths.contains(where: { path == $0 || path.hasPrefix($0 + "/") }) { return }
    }
    Issue.record("the sequence has ended before \(path)")
  }

  @Test("an edit in any layer is a change", .timeLimit(.minutes(1)))
  func folders() async throws {
    let fixture = try fixture()
    let bundle = try LayeredBundle(main: fixture.main.url, substitution: [fixture.substitution.url])
    var changes = try bundle.changes().makeAsyncIterator()
    try fixture.make("b.txt", "edited")
    let change = try #require(try await changes.next())
    #expect(change.paths == ["b.txt"])
    try fixture.make("fr.lproj/a.txt", "edited")
    try await wait(for: "fr.lproj/a.txt", &changes)
    // A directory that appears is watched, too.
    try fixture.override("de.lproj/deep/c.txt", "new")
    try await wait(for: "de.lproj", &changes)
    for round in 0..<3 {
      try fixture.override("de.lproj/deep/c.txt", "\(round)")
      try await wait(for: "de.lproj/deep/c.txt", &changes)
    }
    try (fixture.substitution / "de.lproj").rename(to: fixture.substitution / "it.lproj")
    try await wait(for: "it.lproj", &changes)
    try fixture.override("it.lproj/deep/c.txt", "moved")
    try await wait(for: "it.lproj/deep/c.txt", &changes)
  }

  @Test("a layer that is replaced may change anything, and is watched again", .timeLimit(.minutes(1)))
  func replaced() async throws {
    let fixture = try fixture()
    let bundle = try LayeredBundle(main: fixture.main.url, substitution: [fixture.substitution.url])
    var changes = try bundle.changes().makeAsyncIterator()
    try fixture.substitution.rename(to: fixture.folder / "old")
    #expect(try await changes.next()?.paths == nil)
    try fixture.substitution.makeDirectory()
    try await wait(for: "", &changes)
    // Both events may be one change or two.
    try fixture.override("x.txt", "x")
    try await wait(for: "x.txt", &changes)
    #expect(try bundle.data(forResource: "x.txt") == Data("x".utf8))
  }

  @Test("an archive that is replaced", .timeLimit(.minutes(1)))
  func archive() async throws {
    let fixture = try fixture()
    let path = fixture.folder / "layer.zip"
    try path.write(ZipBuilder([.init("b.txt", "one")]).bytes)
    let bundle = try LayeredBundle(main: fixture.main.url, substitution: [URL(fileURLWithPath: path.text)])
    #expect(try bundle.data(forResource: "b.txt") == Data("one".utf8))
    var changes = try bundle.changes().makeAsyncIterator()
    try path.replace(ZipBuilder([.init("b.txt", "two!")]).bytes)
    #expect(try await changes.next()?.paths == nil)
    #expect(try bundle.data(forResource: "b.txt") == Data("two!".utf8))
  }

  @Test("a mount's changes end with the mount", .timeLimit(.minutes(1)))
  func mount() async throws {
    let fixture = try fixture()
    let mount = try Mount(
      MountSetup(main: fixture.main, point: fixture.point, substitutions: [fixture.substitution]))
    defer { mount.abandon() }
    let bundle = try LayeredBundle(mountPoint: fixture.point.url)
    var changes = try bundle.changes().makeAsyncIterator()
    try fixture.override("b.txt", "override")
    try await wait(for: "b.txt", &changes)
    #expect(try bundle.data(forResource: "b.txt") == Data("override".utf8))
    try mount.unmount()
    while try await changes.next() != nil {}
    #expect(throws: POSIXError.self) { try bundle.changes() }
  }

  @Test("a mount's changes end with an error when its daemon dies", .timeLimit(.minutes(1)))
  func death() async throws {
    let fixture = try fixture()
    var setup = MountSetup(main: fixture.main, point: fixture.point)
    setup.options = ["survive=off"]
    let mount = try Mount(setup)
    defer { mount.abandon() }
    let changes = try LayeredBundle(mountPoint: fixture.point.url).changes()
    mount.process.signal(SIGKILL)
    let error = await #expect(throws: POSIXError.self) { for try await _ in changes {} }
    #expect(error?.code == .ENOTCONN)
    _ = try mount.process.wait(timeout: 20)
  }

  @Test("cancelling the task ends the sequence", .timeLimit(.minutes(1)))
  func cancellation() async throws {
    let fixture = try fixture()
    let bundle = try LayeredBundle(main: fixture.main.url)
    let changes = try bundle.changes()
    let task = Task {
      var count = 0
      for try await _ in changes { count += 1 }
      return count
    }
    task.cancel()
    #expect(try await task.value == 0)
  }
}
