import Glibc
import Posix
import TestSupport
import Testing

@testable import Layers

/// The work folder is this process's own, or not used.
@Suite struct WorkFolderTests {
  private let fixture: UpperFixture
  private let work: ByteString

  init() throws {
    fixture = try UpperFixture()
    work = fixture.upper / ".wh..wh.bundlefs-work"
  }

  private func open(trustsOthers: Bool = false, clonesMount: Bool = true) throws -> UpperLayer {
    try Self.open(fixture.upper, trustsOthers: trustsOthers, clonesMount: clonesMount)
  }

  private static func open(
    _ folder: ByteString, trustsOthers: Bool = false, clonesMount: Bool = true
  ) throws -> UpperLayer {
    let layer = try DirectoryLayer(
      path: folder.bytes, index: 0, covered: nil, clonesMount: clonesMount, isWritable: true)
    return try UpperLayer(layer, for: .mount, trustsOthers: trustsOthers)
  }

  private func fault(clonesMount: Bool = true) throws -> WorkFolderFault? {
    UpperLayer.workFolderFault(
      in: try DirectoryLayer(
        path: fixture.upper.bytes, index: 0, covered: nil, clonesMount: clonesMount, isWritable: true))
  }

  @Test("a folder of another user is refused, whatever its mode is, and left alone")
  func otherOwner() throws {
    for mode in [0o700, 0o755, 0o777] as [UInt32] {
      try work.makeDirectory()
      try work.setOwner(1000, group: 1000)
      try work.setMode(mode)
      try (work / "4194305-1").write("x")
      #expect(try errorNumber { _ = try open() } == .notPermitted)
      #expect(try fault() == .otherOwner(1000))
      // As for `bundlefs override`.
      #expect(try errorNumber { _ = try fixture.tree() } == .notPermitted)
      #expect(try work.names() == ["4194305-1"] && work.status().permissions == mode)
      let trusting = try open(trustsOthers: true)
      #expect(try work.names() == ["whiteout"])
      trusting.close()
      #expect(!work.exists)
    }
  }

  @Test("a mount gets the folder while others that end remove it", .timeLimit(.minutes(2)))
  func concurrentEnds() throws {
    let (folder, errors) = (fixture.upper, Locked<[any Error]>([]))
    let threads = try (0..<4).map { _ in
      ThreadHandle(
        try Thread(name: "mount") {
          do { for _ in 0..<200 { try Self.open(folder).close() } } catch {
            errors.withLock { $0.append(error) }
          }
        })
    }
    for thread in threads { thread.join() }
    #expect(errors.withLock { $0.isEmpty }, "\(errors.withLock { $0 })")
    #expect(try fixture.upper.names() == [])
  }

  @Test("a folder that was left over is closed to others and swept")
  func leftOver() throws {
    try work.makeDirectory()
    try work.setMode(0o2777)
    try (work / "4194305-1").write("x")
    let upper = try open()
    #expect(try work.status().permissions == 0o700 && work.names() == ["whiteout"])
    #expect(try fault() == nil)
    upper.close()
    #expect(try fixture.upper.names() == [])
  }

  @Test("a new folder is closed to others, whatever the layer's root passes on")
  func new() throws {
    try fixture.upper.setOwner(0, group: 100)
    try fixture.upper.setMode(0o2777)
    try fixture.upper.setAttribute("system.posix_acl_default", ACLValue.access(named: 1000))
    let before = try fixture.upper.status().modified
    let upper = try open()
    #expect(try work.status().permissions == 0o700)
    #expect(try !work.attributeNames().contains("system.posix_acl_default"))
    #expect(try asFileSystemUser(1000) { try errorNumber { _ = try work.names() } } == .permissionDenied)
    upper.close()
    #expect(try fixture.upper.status().modified == before)
  }

  @Test("what is no directory is refused, and where it leads nothing is done")
  func otherKinds() throws {
    let outside = try fixture.folder.folder("outside")
    try (outside / "4194305-1").write("kept")
    try outside.setMode(0o755)
    try work.makeLink(to: outside)
    #expect(try errorNumber { _ = try open() } == .notDirectory)
    #expect(try fault() == .notDirectory)
    #expect(try outside.names() == ["4194305-1"] && outside.status().permissions == 0o755)
    try work.remove()
    try work.write("x")
    #expect(try errorNumber { _ = try open() } == .notDirectory)
    #expect(try work.readText() == "x")
  }

  @Test("a folder on another mount is refused, also on the same device")
  func otherMount() throws {
    let outside = try fixture.folder.folder("outside")
    try work.makeDirectory()
    for arguments in [["--bind", outside.text], ["-t", "tmpfs", "tmpfs"]] {
      try Command(["mount"] + (arguments + [work.text]).map { ByteString($0) }).check()
      defer { _ = try? Command("umount", work.text).run() }
      #expect(try fault(clonesMount: false) == .otherMount)
      #expect(try errorNumber { _ = try open(clonesMount: false) } == .notPermitted)
    }
    // A private clone of the layer's mount has the directory beneath.
    try open().close()
    #expect(!work.exists)
  }

  @Test("another folder that takes the name is not used, and the first one continues")
  func exchanged() throws {
    try (fixture.lower / "link").makeLink(to: "x")
    let tree = try fixture.tree()
    try fixture.copyUp("link")
    try work.rename(to: fixture.upper / "away")
    try work.makeDirectory()
    try work.setOwner(1000, group: 1000)
    try (fixture.lower / "second").makeLink(to: "x")
    try fixture.copyUp("second")
    try tree.apply(.remove(["second"]))
    #expect(try work.names() == [])
    #expect(try (fixture.upper / "second").status().kind == .characterDevice)
    // Once it is gone, too, nothing can be made.
    (fixture.upper / "away").removeTree()
    try (fixture.lower / "third").makeLink(to: "x")
    #expect(try errorNumber { try fixture.copyUp("third") } == .notPermitted)
    #expect(try work.names() == [])
    try work.removeDirectory()
  }

  @Test("what is made is not exchanged for what has its name", arguments: [0o010000, 0o140000, 0o060000])
  func madeEntries(kind: UInt32) throws {
    let entry = NewEntry.node(mode: kind | 0o644, device: 0x0101)
    let folder = try withCName(fixture.upper.bytes) { path throws(Errno) in
      try Descriptor.open(path, [.pathOnly, .directory])
    }
    let made = try entry.make("new", inWorkFolder: folder)
    let status = try (fixture.upper / "new").status()
    #expect(try made.attributes().identity.inode == status.inode && status.permissions == 0o600)
    #expect(try errorNumber { _ = try entry.make("new", inWorkFolder: folder).rawValue } == .fileExists)
  }

  // MARK: - Sweeping

  @Test("an entry is swept if its maker has ended, whoever has its process ID now", .timeLimit(.minutes(3)))
  func makers() throws {
    let child = try Child(Command("sleep", "1000"))
    let parent = try #require(ProcessIdentity.start(of: getppid()))
    let other = try #require(ProcessIdentity.start(of: child.pid))
    try work.makeDirectory()
    let kept = Set(["\(getppid())-\(parent)-1f", "file", "a-b-c", "1-2-3-4", "-1-2"].map { ByteString($0) })
    let swept = [
      "\(getppid())-\(parent + 1)-1f", "\(child.pid)-\(other)-0", "\(getppid())-1", "999999999-1-0",
    ].map { ByteString($0) }
    for name in kept.union(swept) { try (work / name).write("x") }
    // A zombie: only `status` waits for it.
    kill(child.pid, SIGKILL)
    #expect(eventually(within: 10) { !ProcessIdentity(id: child.pid, start: other).isRunning })
    for _ in 0..<2 { try open().close() }
    #expect(try Set(work.names()) == kept)
    try child.kill()
  }
}

extension ProcessIdentity {
  fileprivate static func start(of process: pid_t) -> UInt64? {
    guard let line = try? ("/proc" / ByteString("\(process)") / "stat").readText(),
      let end = line.lastIndex(of: ")")
    else { return nil }
    let fields = line[end...].split(separator: " ")
    return fields.count > 20 ? UInt64(fields[20]) : nil
  }
}
