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

  init(
    _ upper: UpperLayer, store: NodeStore, queue: InvalidationQueue,
    kernel: Locked<(any KernelNotifier)?>, own: OwnChanges?, intents: IntentLog?,
    reserved: ReservedNames, budget: Int, renameCopy: UInt64
  ) {
    (self.upper, self.own) = (upper, own)
    descriptors = WriteDescriptors(own, budget: budget)
    pages = own.map { PageKeeper(store, $0, kernel) }
    let copyUp = NodeCopyUp(store: store, upper: upper, queue: queue, own: own, intents: intents)
    entries = EntryWriter(
      store: store, copyUp: copyUp, descriptors: descriptors, reserved: reserved, renameCopy: renameCopy)
    files = FileWriter(store: store, copyUp: copyUp, descriptors: descriptors, kernel: kernel, pages: pages)
  }

  /// To be called in a successor before any request is processed.
  func recover() { IntentRecovery(copyUp: files.copyUp).run() }
}
