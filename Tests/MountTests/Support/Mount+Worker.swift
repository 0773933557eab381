import Glibc
import TestSupport
import Testing

extension Mount {
  /// Kills the process that answers requests, and waits until another one has taken over.
  func killWorker(location: SourceLocation = #_sourceLocation) throws {
    // The first worker can only be survived once it has replied to INIT, before which nothing is answered.
    _ = try point.status()
    let former = worker
    try #require(former != process.pid, "there is no holder", sourceLocation: location)
    kill(former, SIGKILL)
    let isReplaced = eventually(within: 20) { worker != former && worker != process.pid }
    #expect(isReplaced, sourceLocation: location)
  }
}
