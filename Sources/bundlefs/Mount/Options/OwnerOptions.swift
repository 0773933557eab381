import Glibc
import Layers
import Volume

/// The options that say which owners and permissions the mount shows: `uid=`, `squash_to_root`, `uidmapping=`, `umask=` and
/// so on, and `owners=`.
struct OwnerOptions: Equatable {
  /// Whether entries of archives have the owners of the archive.
  var areOfArchives = false
  /// The options that say which user is shown, or which group, by name: one of them may be given.
  private(set) var users: [String: IDMapping] = [:]
  private(set) var groups: [String: IDMapping] = [:]
  var umask: UInt32?

  mutating func setUsers(_ mapping: IDMapping, by option: String) { users[option] = mapping }
  mutating func setGroups(_ mapping: IDMapping, by option: String) { groups[option] = mapping }

  /// nil without an option that changes what is shown of the layers.
  var shown: ShownOwners? {
    if given == nil { return nil }
    var shown = ShownOwners()
    shown.users = users.values.first ?? .same
    shown.groups = groups.values.first ?? .same
    shown.umask = umask ?? 0
    return shown
  }

  /// The name of an option that changes what is shown of the layers; nil without one.
  var given: String? { users.keys.min() ?? groups.keys.min() ?? (umask == nil ? nil : "umask") }

  /// - Throws: if two options say which user, or which group, is shown.
  func check() throws(Failure) {
    for names in [users.keys.sorted(), groups.keys.sorted()] where names.count > 1 {
      throw .usage(
        "'\(names[0])' and '\(names[1])' cannot be combined: both say which owner is shown; leave one of them out"
      )
    }
  }

  /// What `bundlefs status` shows, by option.
  var values: [String: String] {
    var values = ["owners": areOfArchives ? "archive" : "mounter"]
    for name in ["uid", "uidmapping", "squash_to_uid"] { values[name] = users[name]?.text ?? "" }
    for name in ["gid", "gidmapping", "squash_to_gid"] { values[name] = groups[name]?.text ?? "" }
    values["squash_to_root"] = users["squash_to_root"] == nil ? "off" : "on"
    values["umask"] = umask.map { String($0, radix: 8) } ?? ""
    return values
  }
}

extension MountOptions {
  /// Whose the entries of archives are. Set-user-ID bits and devices are served where the kernel honours those of the mount:
  /// fusermount3 allows neither.
  var archiveOwners: ArchiveOwners {
    guard owners.areOfArchives else { return .mounter }
    let isRoot = geteuid() == 0
    func isOn(_ flag: String) -> Bool {
      let names = [Array(flag.utf8), Array("no\(flag)".utf8)]
      return passed.last { names.contains($0) } == names[0]
    }
    return .archive(servesSetID: isRoot && isOn("suid"), servesDevices: isRoot && isOn("dev"))
  }
}

extension IDMapping {
  /// As the option takes it.
  fileprivate var text: String {
    switch self {
    case .same: ""
    case .constant(let id): "\(id)"
    case .ranges(let ranges): ranges.map { "\($0.first):\($0.shown):\($0.count)" }.joined(separator: ":")
    }
  }
}

extension MountOption {
  func areOwnersOfArchives() throws(Failure) -> Bool {
    guard let value, let areOfArchives = ["archive": true, "mounter": false][value.shown] else {
      throw invalid(expected: "\(name)=archive or \(name)=mounter")
    }
    return areOfArchives
  }

  /// The ID of a user or group, which is shown for all.
  func id() throws(Failure) -> IDMapping {
    guard let id = value.flatMap({ Self.number($0.shown) }), id < UInt32.max else {
      throw invalid(expected: "\(name)=N, a number from 0 to 4294967294")
    }
    return .constant(id)
  }

  /// `HOST:CONTAINER:COUNT[:HOST:CONTAINER:COUNT…]`.
  func ranges() throws(Failure) -> IDMapping {
    // Podman writes a colon before the first number, too.
    let text = value?.shown ?? ""
    let words = (text.hasPrefix(":") ? text.dropFirst() : text[...])
      .split(separator: ":", omittingEmptySubsequences: false)
    let numbers = words.compactMap { Self.number(String($0)) }
    var ranges: [IDRange] = []
    if numbers.count == words.count, numbers.count % 3 == 0 {
      for start in stride(from: 0, to: numbers.count, by: 3) {
        let range = IDRange(first: numbers[start], shown: numbers[start + 1], count: numbers[start + 2])
        if let range { ranges.append(range) }
      }
    }
    guard !ranges.isEmpty, ranges.count * 3 == words.count else {
      throw invalid(
        expected: "\(name)=HOST:CONTAINER:COUNT[:HOST:CONTAINER:COUNT...], with IDs from 0 to 4294967294")
    }
    return .ranges(ranges)
  }

  /// Digits only, without a sign.
  private static func number(_ text: String) -> UInt32? {
    text.utf8.allSatisfy { 0x30...0x39 ~= $0 } ? UInt32(text) : nil
  }
}
