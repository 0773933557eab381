import CLibrary
import Posix

/// A mount keeps others from writing to its layer by a lock on the folder (flock(2)).
extension WorkFolder {
  /// A mount that has just ended may still have the lock for a moment.
  private static let (attempts, interval): (Int, UInt32) = (500, 10_000)
  /// Attempts between two questions whether it has ended.
  private static let attemptsUnasked = 50

  /// Locks the folder, which is made.
  /// - Parameter isTaken: whether another mount that has not ended has the lock.
  /// - Returns: a descriptor that has the lock until it is closed by all processes; nil if the file system has no locks.
  /// - Throws: EBUSY if another mount has it, for 5 s if that is not certain; EACCES, EROFS and other errors of a layer that
  ///   cannot be written to; EPERM, ENOTDIR for a folder with a `WorkFolderFault`.
  func lock(_ isTaken: () -> Bool) throws(Errno) -> Descriptor? {
    for attempt in 0..<Self.attempts {
      if let folder = try openToLock() {
        do throws(Errno) {
          // The mount that had it before may have removed the folder.
          if try folder.lock(), try folder.attributes().links > 0 { return folder }
        } catch {
          return nil
        }
      }
      if attempt % Self.attemptsUnasked == 0, isTaken() { break }
      usleep(Self.interval)
    }
    throw .resourceBusy
  }

  /// - Returns: nil if a mount that ends has removed the folder after it was found.
  private func openToLock() throws(Errno) -> Descriptor? {
    try withPlace { root throws(Errno) in
      do throws(Errno) { return try make(in: root).open(".", [.read, .directory]) } catch {
        if error == .noSuchFileOrDirectory, try root.attributes().links > 0 { return nil }
        throw error
      }
    }
  }
}

extension Descriptor {
  /// Calls flock(2) with `LOCK_EX | LOCK_NB`.
  /// - Returns: whether it has the lock; false if another open file has.
  func lock() throws(Errno) -> Bool {
    if flock(rawValue, LOCK_EX | LOCK_NB) == 0 { return true }
    if errno != EWOULDBLOCK { throw .current }
    return false
  }
}
