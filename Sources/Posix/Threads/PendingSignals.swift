import CLibrary

/// The signals that wait for a thread, from `/proc/TID/status`.
public struct PendingSignals: Sendable, Equatable {
  private let bits: UInt64

  /// Signals that make a program end or give up, if it handles them at all.
  private static let ending: [CInt] = [SIGHUP, SIGINT, SIGQUIT, SIGALRM, SIGTERM]

  /// Reads the signals of a thread and its process.
  /// - Parameter thread: its ID; 0 for a thread of another PID namespace.
  /// - Throws: ENOENT if there is no such thread, or it is hidden from this process.
  public init(of thread: Int32) throws(Errno) {
    if thread <= 0 { throw .noSuchFileOrDirectory }
    self.init(
      status: try Descriptor.open(Array("/proc/\(thread)/status".utf8), [.read]).readAll(limit: 1 << 16))
  }

  /// Parses the content of the file.
  public init(status: [UInt8]) {
    var bits: UInt64 = 0
    for line in status.split(separator: UInt8(ascii: "\n")) {
      for name in ["SigPnd:\t", "ShdPnd:\t"] where line.starts(with: name.utf8) {
        bits |= UInt64(String(decoding: line.dropFirst(name.utf8.count), as: UTF8.self), radix: 16) ?? 0
      }
    }
    self.bits = bits
  }

  /// Whether the signal is pending.
  public func contains(_ signal: CInt) -> Bool { bits >> UInt64(signal - 1) & 1 == 1 }

  /// Whether the thread is being killed: of each signal that ends a process, the kernel makes SIGKILL.
  public var isFatal: Bool { contains(SIGKILL) }

  /// Whether a signal is pending by which users and programs stop a program.
  public var isEnding: Bool { isFatal || Self.ending.contains(where: contains) }
}
