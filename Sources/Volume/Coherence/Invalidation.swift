import Fuse
import Posix

/// What has to be invalidated in the kernel's caches, and resolved again by the node store.
struct Invalidation: Hashable {
  /// What changed about a name.
  struct Aspects: OptionSet, Hashable {
    let rawValue: UInt16
    static let entry = Aspects(rawValue: 1)
    static let attributes = Aspects(rawValue: 2)
    /// The content of that entry, and with it its attributes.
    static let content = Aspects(rawValue: 4)
    /// The name may be another hard link to a file that is known by a name already.
    static let link = Aspects(rawValue: 8)

    // For watchers of the mount only.

    /// The name was added to the layer: created there, or renamed into it.
    static let added = Aspects(rawValue: 16)
    static let removed = Aspects(rawValue: 32)
    static let removedDirectory = Aspects(rawValue: 64)
    /// A whiteout that hid the name was removed.
    static let revealed = Aspects(rawValue: 128)
    /// The kernel may have known it as a directory.
    static let knownDirectory = Aspects(rawValue: 256)
    /// The kernel may have known it as something else than a directory.
    static let knownFile = Aspects(rawValue: 512)
    /// The file was created and may still be open for writing.
    static let incomplete = Aspects(rawValue: 1024)
    static let modified = Aspects(rawValue: 2048)
    /// A descriptor that was open for writing was closed.
    static let closed = Aspects(rawValue: 4096)
    static let announced: Aspects = [.attributes, .modified, .closed, .added, .removed, .revealed]
  }

  enum Subject: Hashable {
    /// A name of a directory. A file's attributes and content are invalidated only where it is this layer's.
    case name(NodeID, [UInt8], layer: Int)
    /// A directory's listing and attributes.
    case listing(NodeID)
    /// A file itself, whatever its name.
    case file(NodeID)
    case parts(NodeID)
    case subtree(NodeID)
    /// What the kernel has cached from a predecessor, as far as the layers have changed since.
    case inherited
    /// What the kernel has cached that a change of the mount's layers has made untrue; a program waits for that.
    case formerLayers
    /// Everything that the kernel has cached of a directory and the files in it, none of whose changes may have been
    /// reported. No layer is read.
    case uncovered(NodeID)
    /// The same for a file whose directory is covered.
    case uncoveredFile(NodeID)
    /// One spelling of a name, whose other spellings are not concerned.
    case spelling(EntryKey)
    /// Nothing beyond the invalidations of both names: a file was renamed.
    case renamed(EntryKey, to: EntryKey)

    /// Whether it takes some microseconds: no directory is read, and none below it is visited.
    var isQuick: Bool {
      switch self {
      case .name, .listing, .file, .spelling, .renamed: true
      case .parts, .subtree, .inherited, .formerLayers, .uncovered, .uncoveredFile: false
      }
    }
  }

  let subject: Subject
  var aspects: Aspects = []
}

extension Invalidation.Aspects {
  /// What another catalog does to the tables to which it contributes.
  static let ofTable: Self = [.entry, .content, .modified, .closed]
}

extension Invalidation {
  /// The invalidation of a merged table, as if the top layer's had changed, which nothing hides.
  init(tables name: [UInt8], in directory: NodeID, aspects: Aspects = .ofTable) {
    self.init(subject: .name(directory, name, layer: 0), aspects: aspects)
  }

  /// The invalidations of everything whose changes are not reported. A barrier follows them.
  static func ofUncovered(in store: NodeStore) -> [Invalidation] {
    let found = store.markUncovered()
    return found.directories.map { Invalidation(subject: .uncovered($0)) }
      + found.files.map { Invalidation(subject: .uncoveredFile($0)) }
  }
}
