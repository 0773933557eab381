import Glibc
import Posix
import TestSupport
import Testing

@testable import Layers

/// An upper layer that a user without privileges changes.
@Suite struct UnprivilegedUpperTests {
  @Test("a user without privileges can change an upper layer")
  func changes() throws {
    let fixture = try UpperFixture()
    try fill(fixture)
    try asUser(1000) {
      let tree = try fixture.tree()
      try fixture.copyUp("file")
      try fixture.copyUp("program")
      try fixture.copyUp("locked")
      try tree.apply(.remove(["file"]))
      try tree.apply(.removeDirectory(["emptied"]))
      try tree.apply(.makeDirectory(["opaque"], mode: 0o755, owner: 1000))
      try tree.apply(.rename(["own"], ["moved"], flags: 0))
      #expect(try tree.lookup(["opaque", "old"]) == nil)
      try tree.apply(.make(["foreign"], mode: FileKind.regular.rawValue | 0o6755, device: 0, owner: 1001))
      try tree.apply(.make(["mine"], mode: FileKind.regular.rawValue | 0o6755, device: 0, owner: 1000))
      // The work folder is this user's.
      tree.upper.close()
    }
    for name in ["file", "emptied"] as [ByteString] {
      #expect(try (fixture.upper / name).status().kind == .characterDevice)
    }
    let program = try (fixture.upper / "program").status()
    #expect(program.owner == 1000 && program.permissions == 0o755)
    #expect(
      try Snapshots.description(of: fixture.upper / "locked")
        == Snapshots.description(of: fixture.lower / "locked"))
    #expect(try (fixture.upper / "opaque").attributeNames() == ["user.overlay.opaque"])
    #expect(try (fixture.upper / "foreign").status().permissions == 0o755)
    #expect(try (fixture.upper / "mine").status().permissions == 0o6755)
    #expect(
      try fixture.upperNames() == [
        "emptied", "file", "foreign", "locked", "mine", "moved", "opaque", "program",
      ])
  }

  private func fill(_ fixture: UpperFixture) throws {
    for name in ["file", "program", "opaque/old", "emptied/hidden"] as [ByteString] {
      try (fixture.lower / name).parent.makeDirectories()
      try (fixture.lower / name).write("x")
    }
    try (fixture.lower / "file").setAttribute("user.note", [1])
    try (fixture.lower / "file").setMode(0o444)
    try (fixture.lower / "program").setMode(0o4755)
    try fixture.folder.folder("1/locked").setMode(0o555)
    try (fixture.folder.folder("0/emptied") / "hidden").makeWhiteout()
    try fixture.folder.folder("0/own").setMode(0o755)
    try (fixture.upper / "opaque").makeWhiteout()
    for path in ["0", "0/emptied", "0/own", "0/opaque", "1/file", "1/locked"] as [ByteString] {
      try (fixture.folder / path).setOwner(1000, group: 1000)
    }
    try (fixture.upper / "emptied").setMode(0o555)
  }

  /// Runs the body on a thread of its own that alone belongs to the user.
  private func asUser(_ user: Int, _ body: @escaping () throws -> Void) throws {
    let failure = Locked<String?>(nil)
    nonisolated(unsafe) let body = body
    let thread = ThreadHandle(
      try Thread(name: "user") {
        do {
          try ThreadUser.become(user)
          try body()
        } catch {
          failure.withLock { $0 = "\(error)" }
        }
      })
    thread.join()
    if let failure = failure.withLock({ $0 }) { throw TestFailure(failure) }
  }
}

/// Credentials of a single thread, which only the system calls themselves set.
private enum ThreadUser {
  private typealias SystemCall = @convention(c) (Int, Int, Int, Int) -> Int
  #if arch(x86_64)
  private static let (prctl, setresuid, setresgid) = (157, 117, 119)
  #else
  private static let (prctl, setresuid, setresgid) = (167, 147, 149)
  #endif

  static func become(_ user: Int) throws {
    let call = unsafeBitCast(dlsym(nil, "syscall"), to: SystemCall.self)
    let setSecurebits = 28  // PR_SET_SECUREBITS
    for result in [
      call(prctl, setSecurebits, 0, 0), call(setresgid, user, user, user), call(setresuid, user, user, user),
    ] where result != 0 { throw TestFailure("the thread keeps its user") }
  }
}
