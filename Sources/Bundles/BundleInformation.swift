import Containers
import Layers
import Posix

/// What a bundle says of itself in its Info.plist.
public struct BundleInformation: Sendable, Hashable {
  /// CFBundleIdentifier.
  public var identifier: String?
  /// CFBundleDevelopmentRegion: the language that the bundle was first written in.
  public var developmentRegion: String?

  /// Facts that are known already.
  public init(identifier: String? = nil, developmentRegion: String? = nil) {
    self.identifier = identifier
    self.developmentRegion = developmentRegion
  }

  /// The facts as they are now, through the merged view, so that a substitution's Info.plist wins.
  ///
  /// An Info.plist that is damaged, larger than 4 MiB or may not be read is treated as absent.
  public init(of stack: LayerStack) throws(Errno) {
    self = try InfoPlistCache().information(of: stack, layout: BundleLayout(of: stack))
  }
}

/// Reads Info.plist again only when it is another one, or may be.
final class InfoPlistCache: Sendable {
  /// What tells two contents apart.
  private struct Version: Hashable {
    let identity: FileIdentity
    let size: UInt64
    let modified: TimeSpec
    let changed: TimeSpec
  }

  private enum Answer {
    case facts(BundleInformation?)
    case replaced
  }

  /// The facts of the files that were read; nil for those that have none.
  private let known = Locked(LRUCache<Version, BundleInformation?>(countLimit: 8))
  private static let largestFile = 4 << 20

  /// The facts of the first Info.plist that has any.
  func information(of stack: LayerStack, layout: BundleLayout) throws(Errno) -> BundleInformation {
    let root = try MergedPath(rootOf: stack)
    for path in layout.informationPaths {
      if let facts = try facts(at: path, from: root) { return facts }
    }
    return BundleInformation()
  }

  private func facts(at path: [[UInt8]], from root: MergedPath) throws(Errno) -> BundleInformation? {
    // The bound is only against someone who replaces it for ever.
    for _ in 0..<16 {
      guard case .file(let file) = try root.reach(path) else { return nil }
      if case .facts(let facts) = facts(of: file) { return facts }
    }
    return nil
  }

  private func facts(of file: MergedFile) -> Answer {
    let attributes = file.attributes
    let version = Version(
      identity: attributes.identity, size: attributes.size, modified: attributes.modified,
      changed: attributes.changed)
    if let facts = known.withLock({ $0.value(for: version) }) { return .facts(facts) }
    do throws(Errno) {
      let content = try file.content(limit: Self.largestFile)
      let facts = content.flatMap { PropertyList.information(in: $0) }
      if isSettled(version) { remember(facts, of: version) }
      return .facts(facts)
    } catch {
      return error == .staleFileHandle || error == .noSuchFileOrDirectory ? .replaced : .facts(nil)
    }
  }

  /// Whether a further change would show: a file system's clock may tick as seldom as every two seconds.
  private func isSettled(_ version: Version) -> Bool {
    max(version.modified, version.changed).seconds < TimeSpec.now.seconds - 2
  }

  private func remember(_ facts: BundleInformation?, of version: Version) {
    known.withLock { $0.insert(facts, for: version) }
  }
}
