import Bundles
import Foundation
import Posix

/// The layers of a bundle without a mount, which can be replaced.
final class FixedLayers: Sendable {
  private struct WeakWatcher {
    weak var watcher: BundleWatcher?
  }

  private struct State {
    var reader: LayerReader
    var substitutions: [URL]
    var watchers: [WeakWatcher] = []
    /// When a substitution that had appeared could not be opened.
    var failure: TimeSpec?
  }

  private let main: URL
  private let options: LookupOptions
  private let state: Locked<State>
  /// Held while layers are replaced and their watchers follow, so that these end with the last ones.
  private let replacing = Locked(order: 10, ())
  /// Milliseconds until a substitution that cannot be opened is tried again.
  private static let patience: Int64 = 1000

  init(main: URL, substitutions: [URL], options: LookupOptions) throws(URLError) {
    (self.main, self.options) = (main, options)
    state = Locked(
      State(
        reader: try LayerReader(main: main, substitution: substitutions, options: options),
        substitutions: substitutions))
  }

  var substitutions: [URL] { state.withLock { $0.substitutions } }

  /// The present layers, with those substitutions that have appeared.
  var reader: LayerReader {
    let (reader, failure) = state.withLock { ($0.reader, $0.failure) }
    guard !reader.missing.isEmpty, reader.missing.contains(where: LayerReader.exists) else { return reader }
    if let failure, TimeSpec.monotonic.milliseconds(since: failure) < Self.patience { return reader }
    do throws(URLError) { try replace { $0 } } catch {
      state.withLock { $0.failure = TimeSpec.monotonic }
    }
    return state.withLock { $0.reader }
  }

  /// Replaces the substitutions. Each look-up is made in the former ones or in the new ones.
  func set(_ substitutions: [URL]) throws(URLError) { try replace { _ in substitutions } }

  private func replace(_ change: ([URL]) -> [URL]) throws(URLError) {
    try replacing.withLock { _ throws(URLError) in
      let substitutions = change(state.withLock { $0.substitutions })
      let reader = try LayerReader(main: main, substitution: substitutions, options: options)
      // What was replaced is released without the lock: other locks are taken then.
      let (watchers, _) = state.withLock { state in
        let former = state.reader
        (state.reader, state.substitutions, state.failure) = (reader, substitutions, nil)
        return (state.watchers.compactMap(\.watcher), former)
      }
      for watcher in watchers { watcher.follow(reader.watchedRoots) }
    }
  }

  /// A watcher of the present layers, and of those that replace them.
  func watcher() throws(Errno) -> BundleWatcher {
    try replacing.withLock { _ throws(Errno) in
      let watcher = try BundleWatcher(roots: state.withLock { $0.reader }.watchedRoots)
      // The others are released without the lock, as one may be the last reference.
      _ = state.withLock { state in
        let others = state.watchers.compactMap(\.watcher)
        state.watchers = (others + [watcher]).map(WeakWatcher.init)
        return others
      }
      return watcher
    }
  }
}
