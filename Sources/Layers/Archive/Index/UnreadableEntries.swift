/// Files of an archive that are visible, but whose content cannot be read, for one reason.
public struct UnreadableEntries: Sendable {
  /// Why, for users.
  public let reason: String
  public let count: Int
}

extension ArchiveTree {
  /// The files that cannot be read: the encrypted ones first, unless there is a password, then by compression method.
  func unreadable(hasPassword: Bool) -> [UnreadableEntries] {
    var encrypted = 0
    var methods: [UInt16: Int] = [:]
    for node in nodes where !node.isFolder && node.size > 0 && !node.flags.contains(.isInContainer) {
      if node.flags.contains(.isEncrypted) { encrypted += 1 } else { methods[node.method, default: 0] += 1 }
    }
    let unknown = methods.filter { !EntryDecoder.canDecode($0.key) }
    let first =
      encrypted > 0 && !hasPassword ? [UnreadableEntries(reason: "encrypted", count: encrypted)] : []
    return first
      + unknown.sorted { $0.key < $1.key }.map { method, count in
        UnreadableEntries(reason: "compressed by \(Self.name(of: method))", count: count)
      }
  }

  /// APPNOTE.TXT of the zip format, 4.4.5.
  private static func name(of method: UInt16) -> String {
    switch method {
    case 1: "Shrink"
    case 2...5: "Reduce"
    case 14: "LZMA"
    case 20, 93: "Zstandard"
    case 95: "XZ"
    case 96: "JPEG"
    case 97: "WavPack"
    case 98: "PPMd"
    default: "method \(method)"
    }
  }
}
