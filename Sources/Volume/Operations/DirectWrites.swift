import Fuse
import Layers
import Posix

/// What programs write to files that are passed through: it causes no request.
///
/// While a program has a file open for that, its events are taken for the mount's own, and the kernel asks for its attributes
/// each time. When a program closes it, its state is recorded, by which the events that follow are known. A mapping outlives
/// its descriptor, and its end is no request either, but an IN_CLOSE_WRITE in the layer. Of several of these the kernel makes
/// one. So after each, the layer's file system is asked whether the file has a writer.
final class DirectWrites: DirectWriters {
  private let passthrough: Passthrough
  /// nil where events of our own changes cannot be told.
  private let own: OwnChanges?
  private let queue: InvalidationQueue
  /// Held while a file system is asked whether a file has a writer, by a lease that would refuse an open(2).
  private let probing = Locked(order: 65, ())

  init(_ passthrough: Passthrough, _ own: OwnChanges?, _ queue: InvalidationQueue) {
    (self.passthrough, self.own, self.queue) = (passthrough, own, queue)
  }

  func mayWrite(to node: NodeID) -> Bool { passthrough.mayWrite(to: node) }

  func isOpen(_ node: NodeID) -> Bool { passthrough.hasWriter(node) }

  /// Waits until no file system is being asked about a file that a writer is about to open, which has been counted.
  func willOpen() { probing.withLock { _ in } }

  /// Records the state in which a program leaves a file that it is about to close. It has one open for writing still.
  func willClose(_ node: NodeID, in store: NodeStore) {
    store.recordAttributeChange(of: node)
    guard let own, passthrough.hasWriter(node) else { return }
    var isReported = passthrough.isClosingReported(of: node)
    var recorded: FileStatus?
    // Another thread may have recorded a later state just now.
    for _ in 0..<8 {
      guard let status = try? store.attributes(of: node).attributes, status != recorded else { return }
      own.recordDirectWrites(to: node, status, isReported: isReported)
      (recorded, isReported) = (status, true)
    }
  }

  func recordClosing(of node: NodeID, in store: NodeStore) {
    passthrough.recordClosing(of: node)
    checkMapping(of: node, in: store)
  }

  func checkMapping(of node: NodeID, in store: NodeStore) {
    let areReported = own != nil && store.reportsClosing(of: node)
    guard let closings = passthrough.reportedClosings(of: node, areReported: areReported),
      !isOpenForWriting(node, store), passthrough.endMapping(of: node, after: closings)
    else { return }
    store.recordAttributeChange(of: node)
    // A reply that is being prepared has attributes of before.
    queue.add([Invalidation(subject: .file(node), aspects: .attributes)])
  }

  /// Where a file system cannot tell, the event decides.
  private func isOpenForWriting(_ node: NodeID, _ store: NodeStore) -> Bool {
    do throws(Errno) {
      let present = try store.presentFile(of: node)
      let file = if let present { present } else { try store.openByName(node).0 }
      return try file.withDescriptor { descriptor throws(Errno) in
        probing.withLock { _ in passthrough.hasWriter(node) || descriptor.isOpenForWriting() ?? false }
      }
    } catch {
      // A file that is lost has no attributes either. Others are looked at again.
      return error != .noSuchFileOrDirectory && error != .staleFileHandle
    }
  }
}
