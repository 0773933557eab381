import Layers
import Posix

/// Caches the localizations of a resource folder by the identity and the times of the directories that make it up.
final class LocalizationCache: Sendable {
  private struct Version: Equatable {
    let identity: FileIdentity
    let modified: TimeSpec
    let changed: TimeSpec

    init(_ directory: LayerDirectory) throws(Errno) {
      let attributes = try directory.attributes()
      (identity, modified, changed) = (attributes.identity, attributes.modified, attributes.changed)
    }

    /// Whether a further change would alter the times. Their granularity may be as coarse as two seconds.
    var isStable: Bool { max(modified, changed).seconds < TimeSpec.now.seconds - 2 }
  }

  private struct State {
    /// Empty if the next use lists the folder.
    var versions: [Version] = []
    var matcher = LanguageMatcher([])
  }

  private let state = Locked(State())

  /// - Throws: EACCES if the folder may not be listed; the error of a layer that failed.
  func matcher(for directory: MergedDirectory, in stack: LayerStack) throws(Errno) -> LanguageMatcher {
    let versions = (try? versions(of: directory, in: stack)) ?? []
    let cached = state.withLock { $0 }
    if !versions.isEmpty, cached.versions == versions { return cached.matcher }
    let names = try directory.localizations()
    let matcher = cached.matcher.names == names ? cached.matcher : LanguageMatcher(names)
    let isStable = versions.allSatisfy(\.isStable)
    state.withLock { $0 = State(versions: isStable ? versions : [], matcher: matcher) }
    return matcher
  }

  /// Read before the listing, so that a change in between is seen the next time.
  /// - Returns: an empty list if one is a folder of an archive, whose times say nothing of a replaced archive, or if a
  ///   layer has failed.
  private func versions(of directory: MergedDirectory, in stack: LayerStack) throws(Errno) -> [Version] {
    if directory.missing != nil { return [] }
    var versions: [Version] = []
    for part in directory.parts {
      if stack.layers[part.layer].archive != nil { return [] }
      versions.append(try Version(part))
    }
    return versions
  }
}

extension MergedDirectory {
  /// The names of the entries that may be localizations' folders, without `.lproj`: directories and symbolic links.
  func localizations() throws(Errno) -> [[UInt8]] {
    let listing = try list()
    var names: [[UInt8]] = []
    for item in listing.items where item.kind == .directory || item.kind == .symbolicLink {
      if let name = Language.localization(ofFolder: listing.name(of: item)) { names.append(name) }
    }
    return names
  }
}
