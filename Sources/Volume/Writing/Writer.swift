import Fuse
import Layers
import Posix

/// What a writable mount has beside the parts of every mount.
final class Writer: Sendable {
  let upper: UpperLayer
  let entries: EntryWriter
  let files: FileWriter
  let descriptors: WriteDescriptors
  /// nil where events of our own changes cannot be told.
  let own: OwnChanges?
  /// The same.
  let pages: PageKeeper?
  /// nil unless tables of strings are merged.
  let tables: TableWriter?

  init(
    _ upper: UpperLayer, store: NodeStore, queue: InvalidationQueue,
    kernel: Locked<(any KernelNotifier)?>, own: OwnChanges?, intents: IntentLog?,
    reserved: ReservedNames, budget: Int, renameCopy: UInt64, memory: SharedMemory?
  ) {
    (self.upper, self.own) = (upper, own)
    descriptors = WriteDescriptors(own, budget: budget)
    pages = own.map { PageKeeper(store, $0, kernel) }
    let copyUp = NodeCopyUp(store: store, upper: upper, queue: queue, own: own, intents: intents)
    tables =
      store.stack.tables == nil
      ? nil : TableWriter(store: store, copyUp: copyUp, descriptors: descriptors, memory: memory)
    entries = EntryWriter(
      store: store, copyUp: copyUp, descriptors: descriptors, tables: tables, reserved: reserved,
      renameCopy: renameCopy)
    files = FileWriter(
      store: store, copyUp: copyUp, descriptors: descriptors, tables: tables, kernel: kernel, pages: pages)
  }

  /// To be called in a successor before any request is processed.
  func recover() { IntentRecovery(copyUp: files.copyUp).run() }
}
