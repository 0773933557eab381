import Glibc
import Posix
import TestSupport

/// Directories of a mount that stay open while the layers change, like a shell's working directory.
///
/// While at least one of its parts stays in place, an open directory shows the current content and path. The mount may see
/// several changes as one, so that goes for the parts at the last barrier as well as for those before each change.
final class OpenDirectories {
  private struct OpenDirectory {
    var file: CInt
    var path: [ByteString]
    var parts: Set<FileIdentity>
    var partsAtBarrier: Set<FileIdentity>
  }

  private let point: ByteString
  private let names: [ByteString]
  private var random: SplitMix64
  private var open: [OpenDirectory] = []

  init(_ point: ByteString, names: [ByteString], seed: UInt64) {
    self.point = point
    self.names = names
    random = SplitMix64(seed: seed ^ 0x4e1d)
  }

  deinit { open.forEach { close($0.file) } }

  /// Opens more directories and closes others.
  func openMore(_ layers: [LiveLayer]) throws {
    while open.count > 4 { close(open.remove(at: random.number(0...open.count - 1)).file) }
    guard random.percent(60) else { return }
    var directory = MergedDirectory.root(of: layers.map(\.plan))
    var path: [ByteString] = []
    while random.percent(75), let name = directory.names.sorted().randomElement(using: &random),
      case .directory(let inner)? = directory.lookup(name)
    {
      directory = inner
      path.append(name)
    }
    let location = path.reduce(point) { $0 / $1 }
    let file = try location.call("open") { Glibc.open($0, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) }
    // Half of them have been listed before the change.
    if random.percent(50) { _ = try? handle(file).list() }
    let parts = try parts(of: directory, layers)
    open.append(OpenDirectory(file: file, path: path, parts: parts, partsAtBarrier: parts))
  }

  /// Closes those that have lost all their parts by a change.
  func closeStale(_ layers: [LiveLayer]) throws {
    let stack = layers.map(\.plan)
    open = try open.filter { entry in
      if let directory = MergedDirectory.root(of: stack).directory(entry.path) {
        let parts = try parts(of: directory, layers)
        if !parts.isDisjoint(with: entry.parts), !parts.isDisjoint(with: entry.partsAtBarrier) { return true }
      }
      close(entry.file)
      return false
    }
    for (index, entry) in open.enumerated() {
      guard let directory = MergedDirectory.root(of: stack).directory(entry.path) else { continue }
      open[index].parts = try parts(of: directory, layers)
    }
  }

  /// The differences between the open directories and the model after a barrier.
  func differences(_ layers: [LiveLayer]) -> [String] {
    let stack = layers.map(\.plan)
    for index in open.indices { open[index].partsAtBarrier = open[index].parts }
    return open.flatMap { entry -> [String] in
      guard let directory = MergedDirectory.root(of: stack).directory(entry.path) else { return [] }
      let location = entry.path.reduce(point) { $0 / $1 }
      do {
        return try differences(directory, handle(entry.file), location).map {
          "open directory \(location): \($0)"
        }
      } catch {
        return ["open directory \(location): \(error)"]
      }
    }
  }

  private func differences(_ directory: MergedDirectory, _ handle: ByteString, _ location: ByteString) throws
    -> [String]
  {
    var differences: [String] = []
    let shown = try ByteString([UInt8](handle.bytes.dropLast(2))).linkTarget()
    if shown != location { differences.append("its path is \(shown)") }
    let listsFirst = random.percent(50)
    for isListing in [listsFirst, !listsFirst] {
      if isListing {
        let names = try handle.names()
        let expected = directory.names.sorted()
        if names != expected { differences.append("lists \(names) instead of \(expected)") }
      } else {
        for name in names where (handle / name).exists != (directory.lookup(name) != nil) {
          differences.append("\(name) is \(directory.lookup(name) == nil ? "still" : "not yet") there")
        }
      }
    }
    return differences
  }

  /// A path to the open directory itself.
  private func handle(_ file: CInt) -> ByteString { ByteString("/proc/self/fd/\(file)/.") }

  private func parts(of directory: MergedDirectory, _ layers: [LiveLayer]) throws -> Set<FileIdentity> {
    Set(
      try directory.parts.map { part in
        try withCName(layers[part.layer].disk(part.path).bytes) { path throws(Errno) in
          try Descriptor.open(path, [.pathOnly, .noFollow]).attributes().identity
        }
      })
  }
}

extension MergedDirectory {
  /// The directory at a path below this one.
  func directory(_ path: [ByteString]) -> MergedDirectory? {
    var directory = self
    for name in path {
      guard case .directory(let inner)? = directory.lookup(name) else { return nil }
      directory = inner
    }
    return directory
  }
}
