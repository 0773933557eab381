import Glibc
import Posix
import TestSupport
import Testing

@testable import Fuse

/// Replies to some requests, drops the replies of others, and records FORGET requests.
private final class FileSystemStub: FileSystem {
  let settings: ConnectionSettings
  let forgotten = Locked<[UInt64: UInt64]>([:])

  init(passthroughDepth: Int = 0) {
    var settings = ConnectionSettings()
    settings.passthroughDepth = passthroughDepth
    self.settings = settings
  }

  func lookup(_ name: CName, in parent: NodeID, reply: consuming Reply<ReplyKind.Entry>) {
    guard let attributes = try? Descriptor.open("/", [.pathOnly]).attributes() else { return }
    guard name[0] != 0, name[0] == 97 else { return reply.sendNegative(timeout: 2.5) }
    _ = reply.send(
      EntryReply(
        node: NodeID(rawValue: 7 << 32 | 5),
        attributes: NodeAttributes(attributes, inodeNumber: 1 << 63 | 9, timeout: 1.5), timeout: 0))
  }
  func forget(_ node: NodeID, lookups: UInt64) {
    forgotten.withLock { $0[node.rawValue, default: 0] += lookups }
  }
  func getAttributes(of node: NodeID, reply: consuming Reply<ReplyKind.Attributes>) {}
  func setAttributes(
    of node: NodeID, _ changes: AttributeChanges, reply: consuming Reply<ReplyKind.Attributes>
  ) {}
  func readLink(_ node: NodeID, reply: consuming Reply<ReplyKind.Bytes>) {}
  func openFile(_ node: NodeID, flags: CInt, reply: consuming Reply<ReplyKind.OpenFile>) {
    if node == NodeID(rawValue: 8) {
      _ = reply.send(.passed(BackingFile(rawValue: 3)))
    } else {
      reply.fail(.noFunction)
    }
  }
  func release(_ node: NodeID, flags: CInt, reply: consuming Reply<ReplyKind.Status>) { reply.send() }
  func read(_ node: NodeID, at offset: Int64, size: Int, reply: consuming Reply<ReplyKind.Bytes>) {
    reply.send(Array("content".utf8.prefix(size)))
  }
  func write(
    _ bytes: UnsafeRawBufferPointer, to node: NodeID, at offset: Int64, appends: Bool,
    reply: consuming Reply<ReplyKind.Write>
  ) {}
  func openDirectory(_ node: NodeID, reply: consuming Reply<ReplyKind.OpenDirectory>) {
    reply.fail(.noFunction)
  }
  func readDirectory(
    _ node: NodeID, after cookie: UInt64, size: Int, withEntries: Bool,
    reply: consuming Reply<ReplyKind.Bytes>
  ) {}
  func getExtendedAttribute(
    _ name: CName, of node: NodeID, size: Int, reply: consuming Reply<ReplyKind.ExtendedAttribute>
  ) {}
  func listExtendedAttributes(
    of node: NodeID, size: Int, reply: consuming Reply<ReplyKind.ExtendedAttribute>
  ) {}
  func statfs(reply: consuming Reply<ReplyKind.Statfs>) {}
  func seek(_ node: NodeID, to offset: Int64, whence: CInt, reply: consuming Reply<ReplyKind.Offset>) {}
  func ioctl(
    _ command: UInt32, of node: NodeID, input: UnsafeRawBufferPointer, size: Int,
    reply: consuming Reply<ReplyKind.Ioctl>
  ) {}
  func poll(
    _ node: NodeID, for events: CInt, handle: PollHandle?, reply: consuming Reply<ReplyKind.PollEvents>
  ) {}
  func writeBack(
    _ bytes: UnsafeRawBufferPointer, to node: NodeID, at offset: Int64,
    reply: consuming Reply<ReplyKind.Write>
  ) {}
  func allocate(
    _ node: NodeID, mode: CInt, at offset: Int64, count: Int64, reply: consuming Reply<ReplyKind.Status>
  ) {}
  func synchronize(_ node: NodeID, dataOnly: Bool, reply: consuming Reply<ReplyKind.Status>) {}
  func synchronizeDirectory(_ node: NodeID, dataOnly: Bool, reply: consuming Reply<ReplyKind.Status>) {}
  func setExtendedAttribute(
    _ name: CName, of node: NodeID, _ value: UnsafeRawBufferPointer, flags: CInt,
    reply: consuming Reply<ReplyKind.Status>
  ) {}
  func removeExtendedAttribute(_ name: CName, of node: NodeID, reply: consuming Reply<ReplyKind.Status>) {}
  func make(_ entry: NewEntry, _ name: CName, in parent: NodeID, reply: consuming Reply<ReplyKind.Entry>) {
    DeferredReply(reply).abandon(.noSpace)
  }
  func makeLink(to node: NodeID, _ name: CName, in parent: NodeID, reply: consuming Reply<ReplyKind.Entry>) {}
  func remove(_ name: CName, isDirectory: Bool, from parent: NodeID, reply: consuming Reply<ReplyKind.Status>)
  {
  }
  func rename(
    _ name: CName, in parent: NodeID, to newName: CName, in newParent: NodeID, flags: UInt32,
    reply: consuming Reply<ReplyKind.Status>
  ) {}
}

@Suite struct ReplyTests {
  private func withKernel(_ body: (KernelStub, FileSystemStub) throws -> Void) throws {
    let fileSystem = FileSystemStub()
    let kernel = try KernelStub(fileSystem)
    _ = try kernel.negotiate()
    try body(kernel, fileSystem)
    #expect(!kernel.hasAnotherReply)
  }

  @Test("INIT selects the capabilities in use")
  func negotiation() throws {
    let flags = try KernelStub(FileSystemStub()).negotiate()
    let (autoInvalidate, readdirPlus, atomicTruncate, posixACL): (UInt32, UInt32, UInt32, UInt32) =
      (1 << 12, 1 << 13, 1 << 3, 1 << 20)
    #expect(flags & autoInvalidate != 0)
    #expect(flags & readdirPlus != 0)
    #expect(flags & posixACL != 0)
    #expect(flags & atomicTruncate == 0)
  }

  @Test(
    "passthrough is enabled if both sides support it", arguments: [0, 1, 2],
    [0, 1 << 4, 1 << 5 | 1] as [UInt32])
  func passthrough(depth: Int, offered: UInt32) throws {
    let kernel = try KernelStub(FileSystemStub(passthroughDepth: depth))
    let answer = try kernel.initialize(flags2: offered)
    #expect(answer.error == 0 && answer.body.count == 64)
    let isAgreed = depth > 0 && offered & 1 << 5 != 0
    #expect((answer.number(at: 32, as: UInt32.self) & 1 << 5 != 0) == isAgreed)
    #expect(answer.number(at: 36, as: UInt32.self) == (isAgreed ? UInt32(depth) : 0))
    if isAgreed { #expect(answer.number(at: 12, as: UInt32.self) & 1 << 30 != 0) }
    if !isAgreed { #expect(kernel.session.passthroughObstacle?.contains("Linux 6.9") == true) }
    // Later messages are not modified.
    #expect(try kernel.ask(.read, node: 1, [UInt8](repeating: 9, count: 40)).error == 0)
  }

  @Test("the reply to a passthrough open carries the backing ID")
  func backedOpening() throws {
    try withKernel { kernel, _ in
      let answer = try kernel.ask(.open, node: 8, [UInt8](repeating: 0, count: 8))
      #expect(answer.error == 0 && answer.body.count == 16)
      #expect(answer.number(at: 8, as: UInt32.self) == 1 << 7)
      #expect(answer.number(at: 12, as: Int32.self) == 3)
    }
  }

  @Test("a dropped reply sends EIO once")
  func dropped() throws {
    try withKernel { kernel, _ in
      let answer = try kernel.ask(.getattr, node: 1, [UInt8](repeating: 0, count: 16))
      #expect(answer.error == -EIO)
      #expect(try kernel.ask(.unlink, node: 1, Array("name\0".utf8)).error == -EIO)
    }
  }

  @Test("a request that no thread is left to process fails, unless a successor gets it")
  func abandoned() throws {
    try withKernel { kernel, _ in
      let body = [UInt8](repeating: 0, count: 8) + Array("name\0".utf8)
      #expect(try kernel.ask(.mkdir, node: 1, body).error == -ENOSPC)
      kernel.session.dispatcher.pendingReplies.beginHandover()
      try kernel.send(.mkdir, node: 1, body)
    }
  }

  @Test("an entry reply carries the nodeid, the inode number and the timeouts")
  func entry() throws {
    try withKernel { kernel, _ in
      let answer = try kernel.ask(.lookup, node: 1, Array("a\0".utf8))
      #expect(answer.error == 0)
      #expect(answer.number(at: 0, as: UInt64.self) == 7 << 32 | 5)
      #expect(answer.number(at: 16, as: UInt64.self) == 0 && answer.number(at: 24, as: UInt64.self) == 1)
      #expect(answer.number(at: 36, as: UInt32.self) == 500_000_000)
      #expect(answer.number(at: 40, as: UInt64.self) == UInt64(1) << 63 | 9)
    }
  }

  @Test("a negative entry has nodeid 0")
  func negativeEntry() throws {
    try withKernel { kernel, _ in
      let answer = try kernel.ask(.lookup, node: 1, Array("b\0".utf8))
      #expect(answer.error == 0)
      #expect(answer.number(at: 0, as: UInt64.self) == 0)
      #expect(answer.number(at: 16, as: UInt64.self) == 2)
    }
  }

  @Test("OPEN, OPENDIR and FLUSH fail with ENOSYS")
  func declined() throws {
    try withKernel { kernel, _ in
      for (opcode, size) in [(KernelStub.Opcode.open, 8), (.opendir, 8), (.flush, 24)] {
        let answer = try kernel.ask(opcode, node: 1, [UInt8](repeating: 0, count: size))
        #expect(answer.error == -ENOSYS)
      }
    }
  }

  @Test("FORGET reaches the file system and has no reply")
  func forget() throws {
    try withKernel { kernel, fileSystem in
      try kernel.send(.forget, node: 5, [3, 0, 0, 0, 0, 0, 0, 0])
      #expect(fileSystem.forgotten.withLock { $0 } == [5: 3])
    }
  }
}

@Suite struct DirectoryBufferTests {
  @Test("an entry that does not fit leaves the buffer unchanged")
  func full() {
    var buffer = DirectoryBuffer(size: 64)
    var fits = buffer.add("first", inodeNumber: 1, kind: .regular, cookie: 3)
    var used = buffer.used
    #expect(fits && used == 32)
    fits = buffer.add("second", inodeNumber: 2, kind: .directory, cookie: 4)
    used = buffer.used
    #expect(fits && used == 64)
    fits = buffer.add("third", inodeNumber: 3, kind: .regular, cookie: 5)
    used = buffer.used
    #expect(!fits && used == 64)
  }

  @Test("hasRoomForEntry agrees with the size of an entry", arguments: 1...255)
  func room(length: Int) throws {
    let attributes = try Descriptor.open("/", [.pathOnly]).attributes()
    let entry = EntryReply(
      node: NodeID(rawValue: 2), attributes: NodeAttributes(attributes, inodeNumber: 2, timeout: 0),
      timeout: 0)
    let name = [UInt8](repeating: 0x61, count: length)
    for size in 150...420 {
      var buffer = DirectoryBuffer(size: size)
      let hasRoom = buffer.hasRoomForEntry(nameLength: length)
      guard hasRoom else {
        #expect(size < 152 + length + 7)
        continue
      }
      try withCName(name) { name throws(Errno) in buffer.add(name, entry: entry, cookie: 3) }
      let used = buffer.used
      #expect(used <= size && used >= 152 + length)
      break
    }
  }
}
