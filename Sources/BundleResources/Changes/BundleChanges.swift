import Foundation
import Posix

/// A change of a bundle's files.
public struct BundleChange: Sendable, Hashable {
  /// The changed files and directories, as paths from the bundle's root; a directory stands for everything in it. nil
  /// if anything may have changed: a layer was replaced, or there were more changes than are recorded.
  public let paths: Set<String>?

  /// Creates a change.
  public init(paths: Set<String>?) { self.paths = paths }
}

/// The changes of a bundle's files, in any layer: an asynchronous sequence. See ``LayeredBundle/changes()``.
public struct BundleChanges: AsyncSequence, Sendable {
  public typealias Element = BundleChange
  public typealias Failure = POSIXError

  let watcher: BundleWatcher

  /// Returns an iterator. Several share the changes: each change goes to one of them.
  public func makeAsyncIterator() -> Iterator {
    Iterator(watcher: watcher, signals: watcher.signals.makeAsyncIterator())
  }

  /// Waits for changes. Those that occur between two calls are one element.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate let watcher: BundleWatcher
    fileprivate var signals: AsyncStream<Void>.Iterator

    /// The changes since the last call; nil after the task was cancelled, or the bundle was unmounted.
    /// - Throws: `POSIXError`: `.ENOTCONN` if the process that serves the bundle's mount has died; `.ENOSPC` beyond
    ///   `fs.inotify.max_user_watches`. No change is seen after that.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(POSIXError) -> BundleChange? {
      while await signals.next(isolation: actor) != nil {
        if let change = watcher.takeChange() { return change }
      }
      if let failure = watcher.takeFailure() { throw failure }
      return nil
    }
  }
}

extension LayeredBundle {
  /// The changes of the bundle's files from now on.
  ///
  /// ```swift
  /// for try await change in try bundle.changes() { reload(change.paths) }
  /// ```
  ///
  /// A change is reported after the bundle's methods see it. It may be one that makes no difference, such as an edit of
  /// a file that a substitution hides. The directories of all layers are watched by inotify(7), and of archives the
  /// file; for the bundle of a mount, the mount is watched, which ends the sequence when it is unmounted. The sequence watches
  /// until it and its iterators are gone.
  /// - Throws: `POSIXError`: `.ENOTCONN` if nothing is mounted; `.ENOSPC` beyond `fs.inotify.max_user_watches`;
  ///   `.EMFILE` beyond `fs.inotify.max_user_instances`.
  public func changes() throws(POSIXError) -> BundleChanges {
    do throws(Errno) {
      return BundleChanges(watcher: try watcher())
    } catch {
      throw POSIXError(error)
    }
  }
}
