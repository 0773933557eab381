import Posix
import Testing

@testable import Layers

/// Whom a table below lets read, compared with the topmost one.
@Suite struct TableReadersTests {
  private func status(_ mode: UInt32, _ owner: UInt32, _ group: UInt32) -> FileStatus {
    let time = TimeSpec(seconds: 1, nanoseconds: 0)
    return FileStatus(regularFile: mode, owner: owner, group: group, size: 0, modified: time)
  }

  /// As the kernel decides for a user without capabilities.
  private func mayRead(_ file: FileStatus, user: UInt32, groups: Set<UInt32>) -> Bool {
    if user == file.owner { return file.mode & 0o400 != 0 }
    return file.mode & (groups.contains(file.group) ? 0o040 : 0o004) != 0
  }

  @Test(
    "they are among its readers exactly if each user in any groups who may read the one may read the other")
  func model() {
    let ids = 0...2 as ClosedRange<UInt32>
    let modes = (0..<8).map { (bits: UInt32) in (bits & 4) << 6 | (bits & 2) << 4 | (bits & 1) << 2 }
    let files = ids.flatMap { owner in
      ids.flatMap { group in modes.map { status($0, owner, group) } }
    }
    // User 3 owns nothing, and root may read everything.
    let users = (1...3 as ClosedRange<UInt32>).flatMap { user in
      (0..<8).map { bits in (user: user, groups: Set(ids.filter { 1 << $0 & bits != 0 })) }
    }
    var found: Set<Bool> = []
    for top in files {
      let readers = users.filter { mayRead(top, user: $0.user, groups: $0.groups) }
      for below in files {
        let expected = readers.allSatisfy { mayRead(below, user: $0.user, groups: $0.groups) }
        let answer = TableReaders(top).areAmong(TableReaders(below))
        if answer != expected { Issue.record("\(top) above \(below): \(answer)") }
        found.insert(answer)
      }
    }
    #expect(found == [true, false])
  }
}
