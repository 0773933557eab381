import Glibc
import TestSupport
import Testing

@testable import Posix

@Suite struct ProcessIdentityTests {
  @Test("a process is another one than a later or former one with its ID")
  func reusedID() throws {
    let present = ProcessIdentity.current
    #expect(present.id == getpid() && present.start > 0 && present.isRunning)
    #expect(!ProcessIdentity(id: getpid(), start: present.start + 1).isRunning)
    #expect(ProcessIdentity(id: getpid(), start: 0).isRunning, "its start is unknown")
    #expect(!ProcessIdentity(id: 999_999_999, start: 1).isRunning)
  }

  @Test("a zombie does not run", .timeLimit(.minutes(1)))
  func zombie() throws {
    let child = try Child(Command("sleep", "1000"))
    let start = try #require(ProcessStatus(of: child.pid)?.start)
    let identity = ProcessIdentity(id: child.pid, start: start)
    #expect(identity.isRunning)
    // Nobody waits for it before `kill` does.
    Glibc.kill(child.pid, SIGKILL)
    #expect(eventually(within: 10) { ProcessStatus(of: child.pid)?.hasEnded ?? true })
    #expect(!identity.isRunning)
    try child.kill()
    #expect(!identity.isRunning)
  }

  @Test("the name of a program may look like the fields that follow")
  func names() throws {
    let fields = (4...52).map { "\($0)" }.joined(separator: " ")
    for name in ["a", "a) Z 1 2", ") R ("] {
      let status = try #require(ProcessStatus(Array("7 (\(name)) S \(fields)\n".utf8)))
      #expect(status.start == 22 && !status.hasEnded)
      #expect(ProcessStatus(Array("7 (\(name)) Z \(fields)\n".utf8))?.hasEnded == true)
    }
    #expect(ProcessStatus([]) == nil && ProcessStatus(Array("7 (a) S 4 5".utf8)) == nil)
  }
}
