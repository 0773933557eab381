import Glibc
import Posix
import Synchronization

/// Waits for space that is about to become free: that of files which have lost their names is free once the kernel has
/// forgotten them, and no thread of the daemon looks at them any more, which is so a moment after.
extension NodeStore {
  /// Microseconds; 85 ms in all.
  private static let pauses: [UInt32] = [1000, 4000, 16_000, 64_000]
  /// Seconds after a removal in which its space may become free.
  private static let delay: Int64 = 1

  /// Runs the body, and again while the upper layer is full and space is about to become free.
  func awaitingFreedSpace<Result>(_ body: () throws(Errno) -> Result) throws(Errno) -> Result {
    for pause in Self.pauses {
      do throws(Errno) { return try body() } catch {
        guard error == .noSpace, !waitsInVain.load(ordering: .relaxed), hasJustRemoved || holdsLostFiles
        else { throw error }
        usleep(pause)
      }
    }
    do throws(Errno) { return try body() } catch {
      if error == .noSpace { waitsInVain.store(true, ordering: .relaxed) }
      throw error
    }
  }

  /// Records that an entry of the upper layer was removed.
  func recordFreedSpace() {
    lastRemoval.store(Int64(TimeSpec.monotonic.seconds), ordering: .relaxed)
    waitsInVain.store(false, ordering: .relaxed)
  }

  private var hasJustRemoved: Bool {
    Int64(TimeSpec.monotonic.seconds) - Self.delay <= lastRemoval.load(ordering: .relaxed)
  }

  private var holdsLostFiles: Bool {
    table.withLock { table in table.nodes.contains(where: \.isLastOfUpperFile) }
  }
}
