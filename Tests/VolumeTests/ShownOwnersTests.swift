import Posix
import TestSupport
import Testing

@testable import Volume

/// Which owners and permissions are shown, without a mount.
@Suite struct ShownOwnersTests {
  /// The kernel's check of one class of permissions by what is shown.
  private func allows(_ status: FileStatus, user: UInt32, group: UInt32) -> UInt32 {
    if user == status.owner { return status.mode >> 6 & 7 }
    return group == status.group ? status.mode >> 3 & 7 : status.mode & 7
  }

  private func status(_ mode: UInt32, _ owner: UInt32, _ group: UInt32) -> FileStatus {
    FileStatus(
      regularFile: mode, owner: owner, group: group, size: 0, modified: TimeSpec(seconds: 0, nanoseconds: 0))
  }

  private func randomID(_ random: inout SplitMix64) -> UInt32 {
    let near: [UInt32] = [0, 65534, 100_000, UInt32.max - 40, UInt32.max / 2]
    return near[Int(random.next() % 5)] + UInt32(random.next() % 40)
  }

  private func randomRanges(_ random: inout SplitMix64) -> [IDRange] {
    (0..<1 + random.next() % 4).compactMap { _ in
      IDRange(
        first: randomID(&random), shown: randomID(&random), count: UInt32(random.next() % 30))
    }
  }

  /// One pair after the other.
  private func reference(_ id: UInt32, _ ranges: [IDRange]) -> UInt32? {
    for range in ranges {
      for step in 0..<UInt64(range.count) where UInt64(range.first) + step == UInt64(id) {
        return UInt32(UInt64(range.shown) + step)
      }
    }
    return nil
  }

  @Test("random maps show what a simple reference has", arguments: 0..<50)
  func maps(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let ranges = randomRanges(&random)
    let mapping = IDMapping.ranges(ranges)
    for _ in 0..<500 {
      let id = randomID(&random)
      #expect(mapping.shown(id) == reference(id, ranges), "\(id) in \(ranges)")
    }
  }

  @Test("a map never gives more than the layer's classes have", arguments: 0..<50)
  func rights(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var owners = ShownOwners()
    owners.users = .ranges(randomRanges(&random))
    owners.groups = .ranges(randomRanges(&random))
    owners.umask = UInt32(random.next() % 512)
    for _ in 0..<500 {
      let own = status(UInt32(random.next() % 4096), randomID(&random), randomID(&random))
      let shown = owners.shown(own)
      let (user, group) = (owners.users.shown(own.owner), owners.groups.shown(own.group))
      #expect(shown.owner == user ?? 65534 && shown.group == group ?? 65534)
      #expect(shown.mode & 0o777 & ~own.mode == 0 && shown.mode & owners.umask == 0)
      // An owner or group that has no ID here gives the user 65534 what all have.
      if user == nil {
        #expect(allows(shown, user: 65534, group: 1) & ~(own.mode & 7) == 0)
      }
      if group == nil, shown.owner != 1 {
        #expect(allows(shown, user: 1, group: 65534) & ~(own.mode & 7) == 0)
      }
      if shown.owner != own.owner || shown.group != own.group { #expect(shown.mode & 0o6000 == 0) }
    }
  }

  @Test("set-user-ID bits and sticky bits stay where the owner does")
  func setID() {
    var owners = ShownOwners()
    owners.users = .constant(0)
    #expect(owners.shown(status(0o5755, 0, 3)).mode & 0o7777 == 0o5755)
    #expect(owners.shown(status(0o7755, 1, 3)).mode & 0o7777 == 0o1755)
    #expect(owners.shown(status(0o7755, 1, 3)).owner == 0)
  }

  @Test("ranges cannot pass the last ID, and a range of nothing is none")
  func bounds() {
    #expect(IDRange(first: 0, shown: 0, count: 0) == nil)
    #expect(IDRange(first: 0, shown: 0, count: .max) != nil)
    #expect(IDRange(first: 1, shown: 0, count: .max) == nil)
    #expect(IDRange(first: 0, shown: .max, count: 1) == nil)
    #expect(IDRange(first: .max - 1, shown: 5, count: 1) != nil)
  }

  @Test("an ACL keeps its form, and has the IDs and permissions that are shown")
  func accessList() throws {
    var value: [UInt8] = [2, 0, 0, 0]
    let none: [UInt8] = [255, 255, 255, 255]
    value += [1, 0, 7, 0] + none
    value += [2, 0, 6, 0, 0xE8, 3, 0, 0]
    value += [2, 0, 7, 0, 5, 0, 0, 0]
    value += [4, 0, 7, 0] + none
    value += [8, 0, 7, 0, 0xD0, 7, 0, 0]
    value += [0x10, 0, 7, 0] + none
    value += [0x20, 0, 5, 0] + none
    let list = try #require(AccessControlList(value))
    #expect(list.value == value)
    var owners = ShownOwners()
    owners.users = .ranges([try #require(IDRange(first: 1000, shown: 0, count: 1))])
    owners.umask = 0o022
    let shown = owners.shown(list, of: status(0o775, 1000, 9))
    #expect(shown.entries.map(\.permissions) == [7, 4, 5, 5, 5, 5, 5])
    #expect(shown.entries[1].id == 0 && shown.entries[2].id == 65534 && shown.entries[4].id == 2000)
    owners.groups = .ranges([])
    owners.umask = 0o002
    #expect(owners.shown(list, of: status(0o775, 1000, 9)).entries[3].permissions == 5)
  }
}
