import Glibc
import Posix
import TestSupport

/// Accesses a mount at random to fill the kernel's caches.
final class CacheWarmer {
  private let point: ByteString
  private let names: [ByteString]
  private var random: SplitMix64
  private var openFiles: [CInt] = []

  init(_ point: ByteString, names: [ByteString], seed: UInt64) {
    self.point = point
    self.names = names
    random = SplitMix64(seed: seed ^ 0x3a73)
  }

  deinit { openFiles.forEach { close($0) } }

  /// Makes up to 25 accesses; they may fail.
  func warm(_ stack: [PlannedLayer]) {
    let root = MergedDirectory.root(of: stack)
    for _ in 0..<random.number(0...25) {
      var (directory, path) = (root, point)
      while random.percent(60), let (name, inner) = subdirectory(of: directory) {
        (directory, path) = (inner, path / name)
      }
      access(directory, at: path)
    }
    // Some descriptors stay open during the next changes.
    while openFiles.count > 6 { close(openFiles.remove(at: random.number(0...openFiles.count - 1))) }
  }

  private func subdirectory(of directory: MergedDirectory) -> (ByteString, MergedDirectory)? {
    let names = directory.names.sorted()
    guard !names.isEmpty, case let name = random.pick(names),
      case .directory(let inner)? = directory.lookup(name)
    else { return nil }
    return (name, inner)
  }

  private func access(_ directory: MergedDirectory, at path: ByteString) {
    let names = directory.names.sorted()
    let entry = names.isEmpty ? path : path / random.pick(names)
    switch random.number(0...9) {
    case 0..<2: _ = try? entry.status()
    case 2..<4: _ = try? path.list()
    case 4..<6: _ = try? entry.read()
    case 6..<8: _ = try? (path / random.pick(self.names)).status()
    case 8: _ = try? entry.linkTarget()
    default: keepOpen(random.percent(50) ? path : entry)
    }
  }

  private func keepOpen(_ path: ByteString) {
    let file = try? path.call("open") { open($0, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC) }
    guard let file else { return }
    openFiles.append(file)
    var byte: UInt8 = 0
    if random.percent(50) { _ = read(file, &byte, 1) }
  }
}
