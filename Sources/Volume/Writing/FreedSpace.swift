import Glibc
import Posix

/// Waits for space that is about to become free: that of files which have lost their names is free once the kernel has
/// forgotten them, which it does a moment after.
extension NodeStore {
  /// Microseconds; 21 ms in all.
  private static let pauses: [UInt32] = [1000, 4000, 16_000]

  /// Runs the body, and again while the upper layer is full and files without names are still open.
  func awaitingFreedSpace<Result>(_ body: () throws(Errno) -> Result) throws(Errno) -> Result {
    for pause in Self.pauses {
      do throws(Errno) { return try body() } catch {
        guard error == .noSpace, holdsLostFiles else { throw error }
        usleep(pause)
      }
    }
    return try body()
  }

  private var holdsLostFiles: Bool {
    table.withLock { table in table.nodes.contains(where: \.isLastOfUpperFile) }
  }
}
