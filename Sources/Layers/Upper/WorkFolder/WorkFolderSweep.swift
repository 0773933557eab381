import CLibrary
import Posix

extension WorkFolder {
  /// Removes what processes that have ended left in the folder.
  /// - Throws: EPERM, ENOTDIR for a folder with a `WorkFolderFault`.
  func sweep() throws(Errno) {
    let found: SharedDescriptor? = try withPlace { place throws(Errno) in
      guard let folder = try open(in: place) else { return nil }
      return SharedDescriptor(folder)
    }
    guard let found else { return }
    let names = try layer.gate.call { () throws(Errno) in try found.descriptor.entryNames() }
    for name in names where Self.isLeftOver(name) {
      // What cannot be removed is not shown, and stays.
      try? layer.gate.call { () throws(Errno) in try removeTree(name, in: found.descriptor) }
    }
  }

  /// Whether an entry was made by a process that has ended. Other names than `freshName` and those of former versions,
  /// `PID-NUMBER`, are not ours.
  private static func isLeftOver(_ name: [UInt8]) -> Bool {
    let parts = name.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
      .map { String(decoding: $0, as: UTF8.self) }
    guard let id = parts.first.flatMap({ pid_t($0) }), id > 0 else { return false }
    switch parts.count {
    case 2: return UInt64(parts[1]) != nil
    case 3:
      guard let start = UInt64(parts[1]), UInt64(parts[2], radix: 16) != nil else { return false }
      return !ProcessIdentity(id: id, start: start).isRunning
    default: return false
    }
  }

  /// Removes an entry of the folder with all that is in it, however deep: the directories in it first become entries of the
  /// folder. Follows no links.
  func removeTree(_ name: [UInt8], in folder: borrowing Descriptor) throws(Errno) {
    var pending = [name]
    while let name = pending.popLast() {
      try withCName(name) { name throws(Errno) in
        if try folder.removeEntry(name) { return }
        try folder.unlocking(name) { () throws(Errno) in
          let directory = try folder.open(name, [.pathOnly, .directory, .noFollow])
          for child in try directory.entryNames() where try !directory.removeEntry(child) {
            pending.append(try moveAside(child, from: directory, to: folder))
          }
        }
        try folder.remove(name, isDirectory: true)
      }
    }
  }

  /// - Returns: the directory's name in the folder.
  private func moveAside(
    _ directory: [UInt8], from parent: borrowing Descriptor, to folder: borrowing Descriptor
  ) throws(Errno) -> [UInt8] {
    let aside = freshName
    try withCName(directory) { name throws(Errno) in
      try withCName(aside) { aside throws(Errno) in
        try parent.unlocking(name) { () throws(Errno) in try parent.rename(name, to: aside, in: folder) }
      }
    }
    return aside
  }
}
