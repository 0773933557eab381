import Glibc
import Posix
import TestSupport
import Testing

/// Random archives, alone and in stacks, are compared with folders of the same content.
extension MountTests {
  @Suite struct ArchiveModelTests {
    static let seeds = Seeds.chosen(TestLength.of(full: 200, brief: 30))

    @Test(
      "an archive looks like a folder with the same content, also after a replacement",
      .timeLimit(.minutes(2)),
      arguments: seeds)
    func matchesFolder(seed: UInt64) throws {
      let folder = try TemporaryFolder()
      try ArchiveGenerator.make(seed: seed, in: folder.path)
      let (live, point, twin) = (folder / "live.zip", try folder.folder("mount"), try folder.folder("twin"))
      try Command("cp", (folder / "a1.zip").text, live.text).check()
      let inside: ByteString = seed % 5 == 0 ? "/in" : ""
      let suffix: ByteString = seed % 5 == 0 ? "!/in" : ""
      // The live archive alone, or with other layers above or below it.
      func stack(_ first: ByteString, _ other: ByteString) -> [ByteString] {
        switch seed % 4 {
        case 0: [first]
        case 1: [first, folder / "dir"]
        case 2: [folder / "dir", first]
        default: [other, first, folder / "dir"]
        }
      }
      func setup(_ layers: [ByteString], at point: ByteString) -> MountSetup {
        MountSetup(main: layers[layers.count - 1], point: point, substitutions: Array(layers.dropLast()))
      }
      func expected(_ version: ByteString) throws -> [ByteString: String] {
        let layers = stack(folder / ("a" + version) + inside, folder / "b1")
        return try withMount(setup(layers, at: twin)) { _ in try TreeDigest.of(twin) }
      }
      let (before, after) = (try expected("1"), try expected("2"))
      try withMount(setup(stack(live + suffix, folder / "b1.zip"), at: point)) { mount in
        let seen = try TreeDigest.of(point)
        #expect(seen == before, "\(TreeDigest.difference(seen, before))")
        let reader = try OpenReaders(point, seed: seed)
        if seed % 3 == 0 {
          try Command("sh", "-c", "cat \"$0\" > \"$1\"", (folder / "a2.zip").text, live.text).check()
        } else {
          try (folder / "a2.zip").rename(to: live)
        }
        try mount.barrier()
        let seenAfter = try TreeDigest.of(point)
        #expect(seenAfter == after, "\(TreeDigest.difference(seenAfter, after))")
        if seed % 3 != 0 { try reader.expectOldContent() }
      }
    }
  }
}

/// Files that are open and partly read when the archive is replaced.
private final class OpenReaders {
  private var files: [(descriptor: CInt, content: [UInt8], path: ByteString)] = []

  init(_ root: ByteString, seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    for path in try TreeDigest.files(in: root).filter({ _ in Bool.random(using: &random) }).prefix(20) {
      let content = try path.read()
      // An empty file cannot be partly read.
      if content.isEmpty { continue }
      let file = try path.call("open") { open($0, O_RDONLY | O_CLOEXEC) }
      var byte: UInt8 = 0
      pread(file, &byte, 1, 0)
      files.append((file, content, path))
    }
  }

  deinit { for file in files { close(file.descriptor) } }

  func expectOldContent() throws {
    for file in files {
      let content = try ByteString.readAll(file.descriptor, path: file.path)
      #expect(content.count == file.content.count && content == file.content, "\(file.path)")
    }
  }
}

/// A summary of each entry of a tree.
enum TreeDigest {
  static func of(_ root: ByteString) throws -> [ByteString: String] {
    var found: [ByteString: String] = [:]
    try walk(root) { path, status in
      var text = "\(status.kind.map { "\($0)" } ?? "?") \(String(status.permissions, radix: 8))"
      text += " \(status.modified.seconds) \(status.owner)"
      switch status.kind {
      case .symbolicLink: text += " \(try path.linkTarget())"
      case .directory: break
      default:
        let content = try path.read()
        text += " \(status.size) \(content.count) \(content.hashValue)"
      }
      found[path == root ? "" : ByteString(Array(path.bytes.dropFirst(root.count + 1)))] = text
    }
    return found
  }

  static func files(in root: ByteString) throws -> [ByteString] {
    var found: [ByteString] = []
    try walk(root) { path, status in if status.kind == .regular { found.append(path) } }
    return found
  }

  static func difference(_ seen: [ByteString: String], _ expected: [ByteString: String]) -> String {
    Set(seen.keys).union(expected.keys).filter { seen[$0] != expected[$0] }.sorted()
      .map { "\($0): seen \(seen[$0] ?? "nothing"), expected \(expected[$0] ?? "nothing")" }
      .joined(separator: "\n")
  }

  private static func walk(_ path: ByteString, _ body: (ByteString, StatResult) throws -> Void) throws {
    let status = try path.status()
    try body(path, status)
    guard status.kind == .directory else { return }
    for name in try path.names() { try walk(path / name, body) }
  }
}
