import Fuse
import Layers
import Posix
import Synchronization

/// Releases layers that the mount had before, once no program has a file of theirs open.
///
/// The kernel keeps what it knows of an expired name until memory is short. So names that are left to such files are
/// invalidated, after programs that watch the mount have received their events: those need the dentries. The kernel then
/// forgets each file when the last program closes it.
final class RetiredLayerMonitor: Sendable {
  /// Milliseconds from the time at which all names of former layers are expired until they are invalidated, and between
  /// two looks.
  private static let interval: CInt = 2000

  private let store: NodeStore
  private let release: (@Sendable (Set<LayerID>) -> Bool)?
  private let begun = BlockingQueue<Void>()
  private let eventFD: EventFD
  private let isStopped = Atomic(false)
  private let thread = Locked<ThreadHandle?>(nil)

  /// - Parameter release: forgets the layers with these IDs; returns whether it has.
  /// - Throws: EMFILE.
  init(_ store: NodeStore, release: (@Sendable (Set<LayerID>) -> Bool)?) throws(Errno) {
    self.store = store
    self.release = release
    eventFD = try EventFD()
  }

  /// - Throws: EAGAIN.
  func start(_ kernel: any KernelNotifier) throws(Errno) {
    let handle = ThreadHandle(try Thread(name: "retired-layers") { self.run(kernel) })
    thread.withLock { $0 = handle }
  }

  /// To be called once all names of former layers are expired.
  func begin() { _ = begun.enqueue(()) }

  func stop() {
    begun.close()
    isStopped.store(true, ordering: .relaxed)
    eventFD.signal()
    thread.withLock { $0 }?.join()
  }

  private func run(_ kernel: any KernelNotifier) {
    LayerAccess.current = .shared
    guard begun.dequeue() != nil, waitForInterval() else { return }
    for key in store.namesLeftToRetiredLayers { try? kernel.invalidateEntry(key.name, in: key.parent) }
    repeat { releaseUnused() } while !store.stack.retiredIndexes.isEmpty && waitForInterval()
  }

  /// Waits for the interval.
  /// - Returns: false if the mount ends.
  private func waitForInterval() -> Bool {
    eventFD.wait(or: -1, milliseconds: Self.interval)
    return !isStopped.load(ordering: .relaxed)
  }

  private func releaseUnused() {
    let (stack, used) = (store.stack, store.usedLayers)
    let unused = stack.retiredIndexes.filter { !used.contains(stack.ids[$0]) }
    guard !unused.isEmpty, release?(Set(unused.map { stack.ids[$0] })) == true else { return }
    for index in unused { stack.release(index) }
  }
}
