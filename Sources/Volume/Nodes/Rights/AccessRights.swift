import Containers
import Posix

/// What the kernel decides by whether a user may open an entry: owner, group and permission bits, but no ACL.
struct AccessRights: Hashable, Sendable {
  let owner: UInt32
  let group: UInt32
  let permissions: UInt16

  init(_ attributes: FileStatus) {
    owner = attributes.owner
    group = attributes.group
    permissions = UInt16(truncatingIfNeeded: attributes.mode & 0o7777)
  }
}

/// The rights of files that replies have given to the kernel, each kept once, so that a node needs two bytes for them.
struct ReportedRights {
  /// No reply has told any.
  static let none: UInt16 = 0
  /// Replies have told different ones, or an ACL, or there is no telling: nothing is equal to them.
  static let mixed = UInt16.max

  private var known: [AccessRights] = []
  private var indexes: [AccessRights: UInt16] = [:]
  private var last = none

  /// The number that stands for these rights; `mixed` once there are more than numbers.
  mutating func number(of rights: AccessRights) -> UInt16 {
    // Most files have the rights of the one before.
    if last != Self.none, known[Int(last) - 1] == rights { return last }
    if let number = indexes[rights] {
      last = number
      return number
    }
    guard let number = UInt16(exactly: known.count + 1), number < Self.mixed else { return Self.mixed }
    known.append(rights)
    indexes[rights] = number
    last = number
    return number
  }

  /// nil for `none` and `mixed`.
  func rights(_ number: UInt16) -> AccessRights? {
    number == Self.none || number == Self.mixed ? nil : known[Int(number) - 1]
  }
}

extension NodeTable {
  /// Records the rights that a reply is about to give to the kernel for a file. A program may have opened it by any that it
  /// was given before.
  mutating func recordRights(_ attributes: FileStatus, of slot: UInt32) {
    let number = reportedRights.number(of: AccessRights(attributes))
    let former = nodes[Int(slot)].rights
    if former == number { return }
    nodes[Int(slot)].rights = former == ReportedRights.none ? number : ReportedRights.mixed
  }

  /// The rights by which all programs have opened a file; nil if these may differ.
  func soleRights(of slot: UInt32) -> AccessRights? { reportedRights.rights(nodes[Int(slot)].rights) }
}
