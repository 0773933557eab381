import Glibc
import Posix

/// The file or service that takes the messages of a daemon, from before the mount until the daemon is ready.
///
/// A descriptor as a number: the worker closes it, and the holder, which shares its open files, must not.
struct DaemonLog {
  /// nil to leave standard error alone.
  private let file: CInt?

  /// - Parameter isBackground: whether the daemon leaves the terminal; otherwise `auto` leaves standard error alone.
  /// - Throws: without the service that the option demands; if the file cannot be opened.
  init(_ option: LogOption, isBackground: Bool) throws(Failure) {
    do throws(Errno) {
      switch option {
      case .stderr: file = nil
      case .auto: file = isBackground ? Self.automatic() : nil
      case .journal: file = try Journal.stream(name: Self.name).release()
      case .syslog: file = try SystemLog.datagrams().release()
      case .file(let path): file = try Self.open(path).release()
      }
    } catch { throw .failed("log=\(option.shown): \(error)") }
  }

  private static let name = "bundlefs"

  /// - Returns: nil in a system that has not even `/dev/null`.
  private static func automatic() -> CInt? {
    if let journal = try? Journal.stream(name: name) { return journal.release() }
    if let log = try? SystemLog.datagrams() { return log.release() }
    return (try? Descriptor.open("/dev/null", [.readWrite]))?.release()
  }

  /// Opens a file at its end; makes it if it does not exist.
  private static func open(_ path: [UInt8]) throws(Errno) -> Descriptor {
    // Not blocking: what is no file, such as a pipe that nothing reads, must not stop the daemon.
    let flags: OpenFlags = [.write, .append, .nonBlocking, .noControllingTerminal]
    do throws(Errno) { return try Descriptor.open(path, flags) } catch {
      guard error == .noSuchFileOrDirectory else { throw error }
    }
    let (folder, name) = path.folderAndName
    let directory = try Descriptor.open(folder, [.pathOnly, .directory])
    try withCName(name) { name throws(Errno) in
      do throws(Errno) { _ = try directory.createFile(name) } catch {
        // Another mount has just made it.
        guard error == .fileExists else { throw error }
      }
    }
    return try Descriptor.open(path, flags)
  }

  /// Leads standard error to it.
  func begin() {
    guard let file else { return }
    StandardError.lead(to: file)
    close(file)
  }
}
