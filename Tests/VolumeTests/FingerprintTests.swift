import Layers
import Posix
import Testing

@testable import Volume

@Suite struct FingerprintTests {
  /// A directory whose times are those of all others.
  private func directory(_ inode: UInt64) -> FileStatus {
    let time = TimeSpec(seconds: 1_000_000, nanoseconds: 0)
    var status = FileStatus(
      identity: FileIdentity(device: 1, inode: inode, born: time), mode: 0o40755, owner: 0, group: 0,
      size: 4096,
      modified: time)
    status.links = 2
    return status
  }

  @Test("layers that change places are another state")
  func order() {
    for inode in UInt64(0)..<64 {
      for (first, second) in [(2, 3), (3, 2), (0, 1), (5, 4)] {
        let parts = [(layer: first, attributes: directory(inode)), (second, directory(inode ^ 1))]
        #expect(Fingerprint(of: parts) != Fingerprint(of: parts.reversed()), "\(inode) \(first) \(second)")
      }
    }
  }

  @Test("the same parts are the same state")
  func same() {
    let parts = [(layer: 2, attributes: directory(7)), (3, directory(8))]
    #expect(Fingerprint(of: parts) == Fingerprint(of: parts))
    #expect(Fingerprint(of: parts) != Fingerprint(of: parts.dropLast()))
  }
}
