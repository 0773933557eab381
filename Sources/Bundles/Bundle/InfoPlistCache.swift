import Containers
import Layers
import Posix

/// Caches parsed Info.plist files by the identity, size and timestamps of the file.
final class InfoPlistCache: Sendable {
  private struct Version: Hashable {
    let identity: FileIdentity
    let size: UInt64
    let modified: TimeSpec
    let changed: TimeSpec
  }

  private enum ReadResult {
    case parsed(InfoPlist?)
    /// The file was replaced between lookup and open.
    case replaced
  }

  /// nil for files that are malformed.
  private let cache = Locked(LRUCache<Version, InfoPlist?>(countLimit: 8))
  private static let maxFileSize = 4 << 20
  private static let maxAttempts = 16

  /// The first well-formed Info.plist.
  func infoPlist(of stack: LayerStack, layout: BundleLayout) throws(Errno) -> InfoPlist {
    let root = try MergedPath(rootOf: stack)
    for path in layout.infoPlistPaths {
      if let infoPlist = try infoPlist(at: path, from: root) { return infoPlist }
    }
    return InfoPlist()
  }

  private func infoPlist(at path: [[UInt8]], from root: MergedPath) throws(Errno) -> InfoPlist? {
    for _ in 0..<Self.maxAttempts {
      guard case .file(let file) = try root.resolve(path) else { return nil }
      if case .parsed(let infoPlist) = read(file) { return infoPlist }
    }
    return nil
  }

  private func read(_ file: MergedFile) -> ReadResult {
    let attributes = file.attributes
    let version = Version(
      identity: attributes.identity, size: attributes.size, modified: attributes.modified,
      changed: attributes.changed)
    if let infoPlist = cache.withLock({ $0.value(for: version) }) { return .parsed(infoPlist) }
    do throws(Errno) {
      let content = try file.content(limit: Self.maxFileSize)
      let infoPlist = content.flatMap { InfoPlist(propertyList: $0) }
      if isStable(version) { cache.withLock { $0.insert(infoPlist, for: version) } }
      return .parsed(infoPlist)
    } catch {
      return error == .staleFileHandle || error == .noSuchFileOrDirectory ? .replaced : .parsed(nil)
    }
  }

  /// Whether a further change would alter the timestamps. Their granularity may be as coarse as two seconds.
  private func isStable(_ version: Version) -> Bool {
    max(version.modified, version.changed).seconds < TimeSpec.now.seconds - 2
  }
}
