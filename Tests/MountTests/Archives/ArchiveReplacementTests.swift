import Glibc
import Posix
import TestSupport
import Testing

/// An archive is replaced repeatedly, in every way, while others read it.
extension MountTests {
  @Suite struct ArchiveReplacementTests {
    static let seeds: [UInt64] =
      Binary.variable("BUNDLEFS_SEED").flatMap { UInt64($0) }.map { [$0] } ?? Array(0..<12)
    static let replacements = TestLength.steps(full: 25, brief: 8)
    static let readers = Binary.variable("BUNDLEFS_READERS").flatMap { UInt64($0) } ?? 3
    /// The files that are read at least.
    static let reads = Binary.variable("BUNDLEFS_READS").flatMap { UInt64($0) } ?? 0

    @Test(
      "concurrent readers never see a mixture of an archive's versions",
      .timeLimit(.minutes(10)), arguments: seeds)
    func replaced(seed: UInt64) throws {
      let fixture = try ReplacedArchive(seed: seed)
      var setup = fixture.setup(fixture.live, at: fixture.point)
      if Self.reads > 0 { setup.lifetime = 580 }
      try withMount(setup) { mount in
        let isStopping = Locked(false)
        let readers = try (0..<Self.readers).map {
          try fixture.reader(seed: seed &* 31 &+ $0, until: isStopping)
        }
        defer {
          isStopping.withLock { $0 = true }
          _ = eventually(within: 60) { readers.allSatisfy(\.isFinished) }
        }
        var random = SplitMix64(seed: seed)
        var step = 0
        defer {
          if Self.reads > 0 { print("seed \(seed): \(step) replacements, \(fixture.reads.count) reads") }
        }
        while step < Self.replacements || fixture.reads.count < Self.reads {
          step += 1
          let version = fixture.versions.randomElement(using: &random) ?? fixture.versions[0]
          let method = try fixture.replace(by: version, using: &random)
          try mount.barrier()
          let seen = try TreeDigest.of(fixture.point)
          #expect(
            seen == version.digest,
            "step \(step), \(version.name) \(method): \(TreeDigest.difference(seen, version.digest))")
          for reader in readers {
            if let failure = reader.failure { Issue.record("step \(step): \(failure)") }
          }
          if readers.contains(where: { $0.failure != nil }) { return }
        }
        #expect(readers.allSatisfy { $0.iterations > 0 }, "a reader made no progress")
      }
    }
  }
}

/// The versions of an archive, with the tree that the mount must show for each.
private struct ReplacedArchive: Sendable {
  struct Version: Sendable {
    let name: ByteString
    let archive: [UInt8]
    var digest: [ByteString: String] = [:]
  }

  let folder: TemporaryFolder
  let live: ByteString
  let point: ByteString
  var versions: [Version] = []
  /// The possible contents of a file, by path.
  private var contents: [ByteString: Set<[UInt8]>] = [:]
  /// Whether a folder lies above the archive, below it, or neither.
  private let arrangement: UInt64
  let reads = Counter()

  init(seed: UInt64) throws {
    folder = try TemporaryFolder()
    try ArchiveGenerator.make(seed: seed &+ 1_000_000, in: folder.path)
    (live, point, arrangement) = (folder / "live.zip", try folder.folder("mount"), seed % 3)
    let twin = try folder.folder("twin")
    for name: ByteString in ["a1", "a2", "b1", "b2"] {
      var version = Version(name: name, archive: try (folder / (name + ".zip")).read())
      try withMount(setup(folder / name, at: twin)) { _ in
        version.digest = try TreeDigest.of(twin)
        for path in try TreeDigest.files(in: twin) {
          contents[ByteString(Array(path.bytes.dropFirst(twin.count + 1))), default: []].insert(
            try path.read())
        }
      }
      versions.append(version)
    }
    try live.write(versions[0].archive)
  }

  func setup(_ layer: ByteString, at point: ByteString) -> MountSetup {
    switch arrangement {
    case 0: MountSetup(main: layer, point: point)
    case 1: MountSetup(main: folder / "dir", point: point, substitutions: [layer])
    default: MountSetup(main: layer, point: point, substitutions: [folder / "dir"])
    }
  }

  /// Replaces the archive by a version: by a rename, in place, or in place in two halves.
  /// - Returns: the method, for messages.
  func replace(by version: Version, using random: inout SplitMix64) throws -> String {
    switch Int.random(in: 0..<4, using: &random) {
    case 0, 1:
      try live.replace(version.archive)
      return "renamed"
    case 2:
      try live.write(version.archive)
      return "written in place"
    default:
      let half = version.archive.count / 2
      try live.write(Array(version.archive[..<half]))
      Clock.sleep(Double.random(in: 0..<0.03, using: &random))
      try live.withOpen(O_WRONLY | O_APPEND) { file in
        _ = version.archive[half...].withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
      }
      return "written in place by halves"
    }
  }

  /// Starts a thread that reads all files of the mount in pieces.
  func reader(seed: UInt64, until isStopping: Locked<Bool>) throws -> LoopThread {
    let random = Locked(SplitMix64(seed: seed))
    return try LoopThread("archive reader", until: isStopping) { _ in
      guard let files = try? TreeDigest.files(in: point), !files.isEmpty else { return }
      for path in files {
        let piece = random.withLock { [100, 5000, 70000, 1 << 20].randomElement(using: &$0) ?? 100 }
        try check(path, piece: piece)
      }
    }
  }

  private func check(_ path: ByteString, piece: Int) throws {
    let content: [UInt8]
    reads.add(1)
    do { content = try path.withOpen(O_RDONLY | O_NOFOLLOW) { try Self.read($0, piece: piece) } } catch let
      error
      as DiskError
    {
      // The file vanished or changed its type, or its old content was lost because the archive was overwritten.
      if [.noSuchFileOrDirectory, .notDirectory, .isDirectory, .tooManySymbolicLinkLevels, .staleFileHandle]
        .contains(error.errno)
      {
        return
      }
      throw error
    }
    let name = ByteString(Array(path.bytes.dropFirst(point.count + 1)))
    guard contents[name]?.contains(content) ?? false else {
      throw UnexpectedContent(path: name, size: content.count)
    }
  }

  private static func read(_ file: CInt, piece: Int) throws -> [UInt8] {
    var (content, buffer) = ([UInt8](), [UInt8](repeating: 0, count: piece))
    while true {
      let count = try ByteString.readPart(&buffer, of: file, at: Int64(content.count))
      if count == 0 { return content }
      content += buffer[..<count]
    }
  }
}

/// A content that no version of a file has.
private struct UnexpectedContent: Error, CustomStringConvertible {
  let path: ByteString
  let size: Int
  var description: String { "\(path): \(size) bytes that no version has" }
}
