import Fuse
import TestSupport
import Testing

@testable import Layers
@testable import Posix
@testable import Volume

/// A writable store over two layers, whose events come when a test says so.
struct WritableStore {
  let folder: TemporaryFolder
  let upper: ByteString
  let store: NodeStore
  let own: OwnChanges
  let queue: InvalidationQueue
  let writer: EntryWriter

  init() throws {
    let folder = try TemporaryFolder()
    self.folder = folder
    upper = try folder.folder("0")
    let layers = try (0..<2).map { index in
      try DirectoryLayer(
        path: folder.folder(ByteString("\(index)")).bytes, index: index, covered: nil, isWritable: index == 0)
    }
    queue = try InvalidationQueue()
    own = OwnChanges(queue)
    let watcher = WatcherStub()
    watcher.isExhausted.withLock { $0 = false }
    store = try NodeStore(
      LayerStack(layers: layers), watcher: watcher, cache: .coherent, budget: 1000, isWritable: true,
      lookupObserver: own)
    let copyUp = NodeCopyUp(
      store: store, upper: try UpperLayer(layers[0]), queue: queue, own: own, intents: nil)
    writer = EntryWriter(
      store: store, copyUp: copyUp, descriptors: WriteDescriptors(), tables: nil,
      reserved: ReservedNames(control: [], resources: []), renameCopy: 1 << 20)
  }

  @discardableResult
  func lookUp(_ name: String) throws -> NodeID {
    let merged = try store.merged(of: .root)
    let bytes = Array(name.utf8)
    let found = try #require(try withCName(bytes) { name throws(Errno) in try merged.lookup(name) })
    return try withCName(bytes) { name throws(Errno) in
      try store.entry(found, name, in: .root, merged).node
    }
  }

  func rename(_ name: String, to other: String, _ flags: RenameFlags = []) throws {
    let (source, target) = (Self.key(name), Self.key(other))
    try withCName(source.name) { name throws(Errno) in
      try withCName(target.name) { other throws(Errno) in
        try writer.rename(
          name, source, to: other, target, flags, by: Caller(user: 0, thread: 0),
          EntryOwner(user: 0, group: 0, umask: 0))
      }
    }
  }

  /// What the watcher takes an event for.
  func cause(of mask: InotifyEvent.Mask, at name: String) -> OwnChanges.Cause {
    own.consume(
      InotifyEvent(watch: 1, mask: mask, name: Array(name.utf8), cookie: 0, size: 0), in: .root, store)
  }

  func status(of name: String) throws -> FileStatus {
    let root = try store.merged(of: .root).top
    return try withCName(Array(name.utf8)) { name throws(Errno) in try root.attributes(of: name) }
  }

  /// The names whose invalidation is queued.
  func invalidatedNames() -> Set<String> {
    queue.end()
    let names = (queue.take() ?? []).compactMap { work -> String? in
      guard case .invalidate(let invalidation) = work, case .name(_, let name, _) = invalidation.subject
      else {
        return nil
      }
      return String(decoding: name, as: UTF8.self)
    }
    return Set(names)
  }

  /// The files whose content is invalidated.
  func invalidatedFiles() -> Set<NodeID> {
    queue.end()
    let files = (queue.take() ?? []).compactMap { work -> NodeID? in
      guard case .invalidate(let invalidation) = work, case .file(let node) = invalidation.subject else {
        return nil
      }
      return invalidation.aspects.contains(.content) ? node : nil
    }
    return Set(files)
  }

  static func key(_ name: String) -> EntryKey { EntryKey(parent: .root, name: Array(name.utf8)) }
}
