import Fuse
import Glibc
import Layers
import Posix

extension EntryOperations {
  /// Whether a LOOKUP is that of a rename to another spelling of the same name.
  ///
  /// The kernel looks both names up first, and renames nothing where they are one inode. A LOOKUP does not say what it is for,
  /// so this is asked of the calling thread. Where it may not be examined, such a rename has no effect, as on ext4 without
  /// case.
  ///
  /// Only threads of the daemon's own user are examined: another user could put the path in memory whose pages never arrive,
  /// such as a file of a FUSE file system that does not answer, and the worker that reads it would wait for ever.
  func isForRespelling(
    _ name: CName, in parent: NodeID, _ merged: MergedDirectory, by caller: Caller
  ) throws(Errno) -> Bool {
    guard store.isWritable, merged.foldsNames, caller.thread != 0, caller.user == geteuid() else {
      return false
    }
    let name = [UInt8](bytesOf: name)
    // As most are.
    if merged.isAlone, try merged.top.hasEntry(name) { return false }
    guard let rename = RenameInProgress(ofThread: caller.thread), !rename.isExchange,
      rename.isRespelling(to: name, in: try store.path(of: parent))
    else { return false }
    return try merged.shownSpelling(of: name) != name
  }
}

extension RenameInProgress {
  /// Whether a name in a directory is the rename's last component, which is to be another spelling of the former one, and can
  /// be no directory on the way.
  /// - Parameter directory: its path, which the process's paths end with.
  func isRespelling(to name: [UInt8], in directory: [[UInt8]]) -> Bool {
    guard let from = source.last, target.last == name, from != name, source.count == target.count,
      Self.ends(target[...], with: source), Self.ends(target.dropLast(), with: directory)
    else { return false }
    return ![source, target].contains { path in
      path.indices.dropLast().contains { path[$0] == name && Self.ends(path[..<$0], with: directory) }
    }
  }

  private static func ends(_ path: ArraySlice<[UInt8]>, with end: [[UInt8]]) -> Bool {
    path.count >= end.count && zip(path.suffix(end.count), end).allSatisfy { NameFolding.areEqual($0, $1) }
  }
}
