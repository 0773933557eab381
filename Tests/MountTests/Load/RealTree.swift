import Posix
import TestSupport

/// A tree of this machine as MAIN, and a substitution that overrides every twentieth file.
struct RealTree {
  let folder: TemporaryFolder
  let main: ByteString
  let substitution: ByteString
  let point: ByteString
  /// The sorted paths of MAIN's regular files.
  let files: [ByteString]
  /// The overridden files.
  let replaced: [ByteString]

  init(main: ByteString) throws {
    folder = try TemporaryFolder()
    self.main = main
    substitution = try folder.folder("substitution")
    point = try folder.folder("mount")
    let found = try Command(["find", main, "-type", "f", "-printf", #"%P\0"#]).check(timeout: 120).output
    files = found.split(separator: 0).map { ByteString([UInt8]($0)) }.sorted()
    replaced = stride(from: 0, to: files.count, by: 20).map { [files] in files[$0] }
    for path in replaced {
      try makeFolder(path.parent)
      try (substitution / path).write(Self.replacement(of: path))
    }
  }

  /// Makes a folder in the substitution with the owner and mode of MAIN's, which the mount shows.
  private func makeFolder(_ path: ByteString) throws {
    if path.bytes.isEmpty || (substitution / path).exists { return }
    try makeFolder(path.parent)
    let status = try (main / path).status()
    try (substitution / path).makeDirectory()
    try (substitution / path).setOwner(status.owner, group: status.group)
    try (substitution / path).setMode(status.permissions)
  }

  /// The content that overrides a file.
  static func replacement(of path: ByteString) -> [UInt8] {
    [UInt8]("replaced ".utf8) + path.bytes + [UInt8(ascii: "\n")]
  }

  var setup: MountSetup {
    var setup = MountSetup(main: main, point: point, substitutions: [substitution])
    setup.lifetime = 240
    return setup
  }

  /// The checksums of files by path, computed by four processes concurrently.
  func checksums(of files: [ByteString], in root: ByteString) throws -> [ByteString: ByteString] {
    let children = try (0..<4).map { part in
      let list = folder / ByteString("list-\(part)")
      let paths = stride(from: part, to: files.count, by: 4).map { files[$0].bytes }
      try list.write([UInt8](paths.joined(separator: [0])))
      return try Child(.shell(#"cd "$1" && xargs -0 -r -a "$2" sha256sum -z --"#, root, list))
    }
    var sums: [ByteString: ByteString] = [:]
    for child in children {
      let outcome = try child.wait(timeout: 200)
      if outcome.status != 0 { throw TestFailure("sha256sum in \(root): \(outcome.errorText.prefix(1000))") }
      for line in outcome.output.split(separator: 0) {
        sums[ByteString([UInt8](line.dropFirst(66)))] = ByteString([UInt8](line.prefix(64)))
      }
    }
    return sums
  }

  /// One line for each entry below a folder: path, type, mode, owner, link target and, for files, size and mtime.
  /// Overridden files have only the path.
  static func outline(_ root: ByteString, without replaced: Set<ByteString>) throws -> [ByteString] {
    let found = try Command.shell(
      #"cd "$1" && find . -mindepth 1 \( -type f -printf '%P\n%y %m %U:%G %l %s %T@\0'"#
        + #" -o -printf '%P\n%y %m %U:%G %l\0' \)"#, root
    ).check(timeout: 120).output.split(separator: 0)
    return found.compactMap { line in
      let path = ByteString([UInt8](line.prefix { $0 != UInt8(ascii: "\n") }))
      return replaced.contains(path) ? path : ByteString([UInt8](line))
    }.sorted()
  }
}
