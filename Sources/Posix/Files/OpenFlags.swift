import CLinux
import Glibc

/// Flags of open(2). O_CLOEXEC is always set.
public struct OpenFlags: OptionSet, Sendable {
  /// The bits of open(2).
  public let rawValue: CInt

  /// The flags with these bits.
  public init(rawValue: CInt) { self.rawValue = rawValue }

  /// `O_RDONLY`.
  public static let read = OpenFlags(rawValue: O_RDONLY)
  /// `O_WRONLY`.
  public static let write = OpenFlags(rawValue: O_WRONLY)
  /// `O_RDWR`.
  public static let readWrite = OpenFlags(rawValue: O_RDWR)
  /// `O_PATH`.
  public static let pathOnly = OpenFlags(rawValue: CInt(linux_O_PATH))
  /// `O_DIRECTORY`.
  public static let directory = OpenFlags(rawValue: O_DIRECTORY)
  /// `O_NOFOLLOW`; with `pathOnly`, opens the symbolic link itself.
  public static let noFollow = OpenFlags(rawValue: O_NOFOLLOW)
  /// `O_NONBLOCK`; opening a FIFO then does not wait for a writer.
  public static let nonBlocking = OpenFlags(rawValue: O_NONBLOCK)
  /// `O_NOCTTY`.
  public static let noControllingTerminal = OpenFlags(rawValue: O_NOCTTY)
}
