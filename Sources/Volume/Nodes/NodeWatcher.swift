import Fuse
import Layers
import Posix

/// Compares what the kernel is given for a name with what the mount's last change has left there. `OwnChanges` is the one
/// that a writable mount has.
protocol LookupObserver: AnyObject, Sendable {
  /// - Parameter found: nil for nothing.
  func recordLookup(_ found: Entry?, at key: EntryKey)
  /// Whether the mount is just changing what has a name.
  func isChanging(_ key: EntryKey) -> Bool

  /// The same where case does not count: the entry that was found may have another spelling.
  func recordSpelling(at key: EntryKey, in part: LayerDirectory)
}

/// Watches the layers on behalf of the node store. `LayerWatcher` is the one that a mount has.
protocol NodeWatcher: AnyObject, Sendable {
  /// - Returns: nil for a directory of an archive, which is watched as a whole.
  /// - Throws: ENOSPC beyond `fs.inotify.max_user_watches`.
  func watch(_ part: LayerDirectory, for node: NodeID) throws(Errno) -> WatchDescriptor?
  /// Watches a file itself, whatever its names are.
  /// - Parameter follows: whether the path is a link in `/proc/self/fd` rather than a name of the file.
  /// - Throws: ENOSPC as above; ENOENT.
  func watchFile(_ node: NodeID, at path: CName, follows: Bool) throws(Errno)
  func watchesFile(_ node: NodeID) -> Bool
  func unwatch(_ node: NodeID, except kept: [WatchDescriptor])
  func unwatchFile(_ node: NodeID)
  /// Whether every change in a watched directory that was finished before has been recorded, in the node table and in the
  /// indexes of names.
  var hasHandledAll: Bool { get }
  /// What is wrong with a layer as a whole; nil if nothing is.
  func fault(of layer: Int) -> String?
  /// A directory was found that cannot be watched; it has to be polled from now on.
  func directoryIsUncovered()
  /// The parts of a directory may have changed without the node store having noticed.
  func partsMayHaveChanged(of node: NodeID)
  /// A lookup has found another directory by a directory's name, or the directory by a new one: what is cached of it and
  /// of what is below has former inode numbers.
  func directoryWasRenumbered(_ node: NodeID)
  /// The kernel has to forget a spelling of a name, which is no longer recorded.
  func spellingWasEvicted(_ key: EntryKey)
}
