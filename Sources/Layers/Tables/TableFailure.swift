import Posix

/// A table of strings that is not merged with others, since it could not be parsed or is not for all their readers.
public struct TableFailure: Sendable {
  /// The most that are kept.
  static let most = 100

  struct Key: Hashable {
    let directory: FileIdentity
    let layer: Int
    let name: [UInt8]

    init(_ contributor: MergedTables.Contributor) {
      directory = contributor.directory.identity
      layer = contributor.directory.layer
      name = contributor.name
    }
  }

  private let contributor: MergedTables.Contributor
  /// The position in the table, if that is a text, and the reason.
  public let reason: String

  init(_ contributor: MergedTables.Contributor, _ reason: String) {
    (self.contributor, self.reason) = (contributor, reason)
  }

  var key: Key { Key(contributor) }

  /// The index of its layer.
  public var layer: Int { contributor.directory.layer }

  public var name: [UInt8] { contributor.name }

  /// Its directory's path, below the layer's root if the layer is a private clone; nil in an archive.
  public var directory: [UInt8]? { contributor.directory.presentPath }

  /// Whether the layer still has that file, unchanged. False for a layer that must not be waited for.
  var isPresent: Bool {
    let present = try? withCName(contributor.name) { name throws(Errno) in
      try contributor.directory.attributes(of: name)
    }
    return present == contributor.status
  }
}

extension LayerDirectory {
  /// What procfs names the directory.
  fileprivate var presentPath: [UInt8]? {
    guard case .descriptor(let handle) = backing else { return nil }
    return try? withCName(handle.descriptor.procPath) { path throws(Errno) in
      try Descriptor.open(path, [.pathOnly, .noFollow]).linkTarget()
    }
  }
}
