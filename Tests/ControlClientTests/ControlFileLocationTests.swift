import ControlClient
import Posix
import TestSupport
import Testing

@Suite struct ControlFileLocationTests {
  @Test("a directory without a mount has no control file")
  func notMounted() throws {
    let folder = try TemporaryFolder()
    try (folder / "file").write("")
    let cases: [(ByteString, Errno)] = [
      (folder.path, .inappropriateIOCTLForDevice), (folder / "missing", .noSuchFileOrDirectory),
      (folder / "file", .notDirectory),
    ]
    for (path, expected) in cases {
      #expect(throws: expected, "\(path)") { try ControlFileLocation(mountPoint: path.bytes) }
    }
  }

  @Test("errors that end a listener without a message")
  func endOfMount() {
    for errno in [Errno.socketNotConnected, .inappropriateIOCTLForDevice, .noSuchFileOrDirectory] {
      #expect(errno.isEndOfMount)
    }
    #expect(!Errno.permissionDenied.isEndOfMount && !Errno.resourceBusy.isEndOfMount)
  }
}
