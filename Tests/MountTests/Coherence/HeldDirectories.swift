import Glibc
import Posix
import TestSupport

/// Directories of a mount that stay open while the layers change, as a shell's working directory does.
///
/// As long as one of a directory's parts stays where it is, the directory lives: whoever stands in it sees
/// what is there now, and its path is known.
final class HeldDirectories {
  private struct Held {
    var file: CInt
    var path: [ByteString]
    var parts: Set<FileIdentity>
  }

  private let point: ByteString
  private let names: [ByteString]
  private var random: SplitMix64
  private var held: [Held] = []

  init(_ point: ByteString, names: [ByteString], seed: UInt64) {
    self.point = point
    self.names = names
    random = SplitMix64(seed: seed ^ 0x4e1d)
  }

  deinit { held.forEach { close($0.file) } }

  /// Opens a few directories more, and lets others go.
  func hold(_ layers: [LiveLayer]) throws {
    while held.count > 4 { close(held.remove(at: random.number(0...held.count - 1)).file) }
    guard random.percent(60) else { return }
    var directory = MergedDirectory.root(of: layers.map(\.plan))
    var path: [ByteString] = []
    while random.percent(75), let name = directory.names.sorted().randomElement(using: &random),
      case .directory(let inner)? = directory.lookup(name)
    {
      directory = inner
      path.append(name)
    }
    let place = path.reduce(point) { $0 / $1 }
    let file = try place.call("open") { open($0, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) }
    // Half of them know already what is there.
    if random.percent(50) { _ = try? handle(file).list() }
    held.append(Held(file: file, path: path, parts: try parts(of: directory, path, layers)))
  }

  /// Lets those go that have none of their parts left after a change.
  func drop(_ layers: [LiveLayer]) throws {
    let stack = layers.map(\.plan)
    held = try held.filter { entry in
      guard let directory = MergedDirectory.root(of: stack).directory(entry.path),
        try !parts(of: directory, entry.path, layers).isDisjoint(with: entry.parts)
      else {
        close(entry.file)
        return false
      }
      return true
    }
    for (index, entry) in held.enumerated() {
      guard let directory = MergedDirectory.root(of: stack).directory(entry.path) else { continue }
      held[index].parts = try parts(of: directory, entry.path, layers)
    }
  }

  /// Where those who stand in the directories see other things than the model.
  func differences(_ layers: [LiveLayer]) -> [String] {
    let stack = layers.map(\.plan)
    return held.flatMap { entry -> [String] in
      guard let directory = MergedDirectory.root(of: stack).directory(entry.path) else { return [] }
      let place = entry.path.reduce(point) { $0 / $1 }
      do {
        return try differences(directory, handle(entry.file), place).map { "standing in \(place): \($0)" }
      } catch {
        return ["standing in \(place): \(error)"]
      }
    }
  }

  private func differences(_ directory: MergedDirectory, _ handle: ByteString, _ place: ByteString) throws
    -> [String]
  {
    var differences: [String] = []
    let shown = try ByteString([UInt8](handle.bytes.dropLast(2))).linkTarget()
    if shown != place { differences.append("its path is now \(shown)") }
    let listsFirst = random.percent(50)
    for isListing in [listsFirst, !listsFirst] {
      if isListing {
        let names = try handle.names().filter {
          !directory.path.bytes.isEmpty || !Mount.ownNames.contains($0)
        }
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

  /// The open directory itself, as a path.
  private func handle(_ file: CInt) -> ByteString { ByteString("/proc/self/fd/\(file)/.") }

  private func parts(of directory: MergedDirectory, _ path: [ByteString], _ layers: [LiveLayer]) throws
    -> Set<FileIdentity>
  {
    Set(
      try directory.parts.map { part in
        try withCName(layers[part.layer].disk(path).bytes) { path throws(Errno) in
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
