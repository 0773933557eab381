import Fuse
import Glibc
import Layers
import Posix

/// READ, LSEEK, READLINK, and, with `-o passthrough`, OPEN and RELEASE (`FileOperations+Opening.swift`).
struct FileOperations: Sendable {
  let store: NodeStore
  let control: ControlFile
  let prefetcher: FilePrefetcher
  let kernel: Locked<(any KernelNotifier)?>
  /// nil for a read-only mount.
  let writer: Writer?
  /// nil with `announce=off`.
  let expected: ExpectedRequest?
  /// Opens files whose size the kernel may have wrong: asking the kernel issues a request to our own mount.
  private let sizeChecker = SerialWorker(name: "size-check")
  /// Makes the kernel refresh attributes, which may wait for READs that `sizeChecker` has yet to reply to.
  private let attributeRefresher = SerialWorker(name: "attr-refresh")
  let passthrough = Locked(PassthroughMode.off)
  /// nil unless files are passed through for writing.
  let directWrites = Locked<DirectWrites?>(nil)

  func start(_ watchdog: LayerWatchdog) throws(Errno) {
    try sizeChecker.start(watchdog)
    try attributeRefresher.start(watchdog)
  }

  func stop() {
    sizeChecker.stop()
    attributeRefresher.stop()
  }

  // MARK: - READ

  func read(_ node: NodeID, at offset: Int64, size: Int, _ reply: consuming Reply<ReplyKind.Bytes>) {
    if node == ControlFile.node {
      reply.send(Array(control.read(at: offset, size: size)))
      return
    }
    if node == FoldingMarker.node { return reply.send([UInt8]()) }
    let file: LayerFile?
    do throws(Errno) { file = try openFile(of: node, isBegin: offset == 0) } catch {
      return reply.fail(error)
    }
    if let file { return Self.send(file, at: offset, size: size, isFirst: true, reply) }
    let deferred = DeferredReply(reply)
    let isQueued = sizeChecker.add { [self] in readCheckingSize(node, at: offset, size: size, deferred) }
    if !isQueued { deferred.abandon(.staleFileHandle) }
  }

  private func readCheckingSize(
    _ node: NodeID, at offset: Int64, size: Int, _ deferred: DeferredReply<ReplyKind.Bytes>
  ) {
    let opened: Result<LayerFile, Errno>
    do throws(Errno) { opened = .success(try openCheckingSize(node)) } catch {
      let isAgain =
        error == .deferred
        && store.stack.runDeferred { readCheckingSize(node, at: offset, size: size, deferred) }
      if isAgain { return }
      opened = .failure(error)
    }
    guard let reply = deferred.take() else { return }
    switch opened {
    case .success(let file): Self.send(file, at: offset, size: size, isFirst: true, reply)
    case .failure(let error): reply.fail(error)
    }
  }

  /// - Returns: nil while the kernel may keep another size of it; then `openCheckingSize` opens it.
  /// - Parameter isBegin: whether the file's beginning is read.
  func openFile(of node: NodeID, isBegin: Bool = false) throws(Errno) -> LayerFile? {
    let opened = try store.openFile(of: node)
    if let opened, opened.isNew || isBegin { prefetcher.recordRead(of: node, isFirst: opened.isNew) }
    return opened?.file
  }

  /// - Parameter isFirst: whether this is the first attempt, which counts as hit or miss.
  private static func send(
    _ file: LayerFile, at offset: Int64, size: Int, isFirst: Bool, _ reply: consuming Reply<ReplyKind.Bytes>
  ) {
    if size >= spliceThreshold, file.hasDescriptor { return sendSpliced(file, at: offset, size: size, reply) }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 16)
    defer { buffer.deallocate() }
    let count: Int?
    do throws(Errno) { count = try file.readNonBlocking(into: buffer, at: offset, isCounted: isFirst) } catch
    {
      return reply.fail(error)
    }
    if let count {
      reply.send(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    } else {
      sendWhenReadable(file, at: offset, size: size, reply)
    }
  }

  /// Bytes from which on a reply is spliced; copying fewer is faster.
  private static let spliceThreshold = 64 << 10

  private static func sendSpliced(
    _ file: LayerFile, at offset: Int64, size: Int, _ reply: consuming Reply<ReplyKind.Bytes>
  ) {
    let deferred = DeferredReply(reply)
    do throws(Errno) {
      try file.withDescriptor { descriptor throws(Errno) in
        deferred.take()?.send(descriptor, at: offset, size: size)
      }
    } catch {
      deferred.take()?.fail(error)
    }
  }

  /// Replies once an entry of an archive is decompressed that far; no request worker waits for it.
  private static func sendWhenReadable(
    _ file: LayerFile, at offset: Int64, size: Int, _ reply: consuming Reply<ReplyKind.Bytes>
  ) {
    let deferred = DeferredReply(reply)
    file.whenReadable(at: offset, count: size) { failure in
      guard let reply = deferred.take() else { return }
      if let failure { return reply.fail(failure) }
      send(file, at: offset, size: size, isFirst: false, reply)
    }
  }

  // MARK: - Files whose size changed

  /// For a file that took another one's place: some 0.3 s, in which also a busy machine answers. A read of it fails after that.
  private static let mostAttempts = 20

  /// Opens a file, and waits until the kernel has its size. The node is pinned to the file first, so that the size
  /// that the kernel asks for is this file's, however fast programs replace it.
  /// - Throws: ESTALE if the node was rebound to another file and the kernel keeps the former size, or its size
  ///   cannot be had.
  private func openCheckingSize(_ node: NodeID) throws(Errno) -> LayerFile {
    while true {
      guard let file = try pin(node) else { continue }
      let wasRebound = try store.table.withLock { table throws(Errno) in
        table[try table.slot(of: node)].wasRebound
      }
      let isCurrent = try kernelHasSize(of: file, node, attempts: wasRebound ? Self.mostAttempts : 1)
      // A file that grows while it is first opened is cut for that moment, as on any file system.
      if !isCurrent, wasRebound { throw .staleFileHandle }
      try store.table.withLock { table throws(Errno) in table[try table.slot(of: node)].confirmSize() }
      return file
    }
  }

  /// - Returns: nil if the node was rebound meanwhile.
  func pin(_ node: NodeID) throws(Errno) -> LayerFile? {
    let present = try store.table.withLock { table throws(Errno) in
      table.useFile(of: try table.slot(of: node))
    }
    if let present { return present }
    let (opened, identity) = try store.openByName(node)
    return try store.keep(opened, of: identity, for: node)
  }

  /// Makes the kernel send GETATTR, after which it drops all replies to earlier requests, and waits until it has the
  /// file's size.
  /// - Parameter attempts: the kernel may discard the first reply, if an invalidation overtook it.
  private func kernelHasSize(
    of file: LayerFile, _ node: NodeID, attempts: Int
  ) throws(Errno) -> Bool {
    guard let kernel = kernel.withLock({ $0 }) else { return false }
    var cached = try? kernel.size(of: node)
    var refresh = Counter()
    for attempt in 0..<attempts where cached != nil {
      var isRefreshed = cached != (try file.attributes().size)
      // On a busy machine the one before may not have begun.
      if attempt == 0 || refresh.count > 0 {
        refresh = Counter()
        // On another thread: to take another size, the kernel waits for the READs that wait for this thread.
        _ = attributeRefresher.add { [refresh] in
          try? kernel.refreshAttributes(of: node)
          refresh.add(1)
        }
      }
      // Microseconds; 17 ms in all.
      for pause: UInt32 in [50, 100, 200, 400] + [UInt32](repeating: 1000, count: 16) {
        usleep(pause)
        if refresh.count > 0 { isRefreshed = true }
        cached = try? kernel.size(of: node)
        if isRefreshed, cached == (try file.attributes().size) { return true }
      }
    }
    return false
  }

  // MARK: - LSEEK and READLINK

  func seek(_ node: NodeID, to offset: Int64, whence: CInt, _ reply: consuming Reply<ReplyKind.Offset>) {
    if node == ControlFile.node { return control.seek(offset, whence: whence, reply) }
    if node == FoldingMarker.node { return reply.fail(.noSuchAddressOrDevice) }
    let found: Int64
    do throws(Errno) {
      var file = try openFile(of: node)
      if file == nil { file = try store.openByName(node).0 }
      found = try file?.seek(offset, whence: whence) ?? 0
    } catch {
      return reply.fail(error)
    }
    reply.send(found)
  }

  func readLink(_ node: NodeID, _ reply: consuming Reply<ReplyKind.Bytes>) {
    let target: [UInt8]
    do throws(Errno) {
      target = try store.evictingOnDemand { () throws(Errno) in
        try store.withLocation(of: node) { directory, name, identity throws(Errno) in
          try directory.openPath(name, identity: identity).linkTarget()
        }
      }
      // The kernel caches the target, so the node must not be bound to another link.
      try store.table.withLock { table throws(Errno) in table[try table.slot(of: node)].isPinned = true }
    } catch {
      return reply.fail(error)
    }
    reply.send(target)
  }
}
