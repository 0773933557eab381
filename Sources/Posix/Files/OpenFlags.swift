import CLinux
import CLibrary

/// Flags of open(2). O_CLOEXEC is always set.
///
/// O_RDONLY is 0 and O_RDWR is no combination of the others, so reading and writing have bits of their own here:
/// `contains(.read)` and `contains(.write)` say what the flags allow.
public struct OpenFlags: OptionSet, Sendable {
  /// The bits of open(2) except for the access mode, and the bits of `read` and `write`.
  public let rawValue: CInt

  /// The flags with these bits.
  public init(rawValue: CInt) { self.rawValue = rawValue }

  /// The bits for open(2). Without `read` and `write` it is opened for reading, which `pathOnly` overrides.
  var openBits: CInt {
    let mode = contains(.readWrite) ? O_RDWR : contains(.write) ? O_WRONLY : O_RDONLY
    return subtracting(.readWrite).rawValue | mode
  }

  /// `O_RDONLY`, with `write` `O_RDWR`.
  public static let read = OpenFlags(rawValue: 1 << 29)
  /// `O_WRONLY`, with `read` `O_RDWR`.
  public static let write = OpenFlags(rawValue: 1 << 30)
  /// `O_RDWR`.
  public static let readWrite: OpenFlags = [.read, .write]
  /// `O_PATH`.
  public static let pathOnly = OpenFlags(rawValue: CInt(linux_O_PATH))
  /// `O_DIRECTORY`.
  public static let directory = OpenFlags(rawValue: O_DIRECTORY)
  /// `O_NOFOLLOW`; with `pathOnly`, opens the symbolic link itself.
  public static let noFollow = OpenFlags(rawValue: O_NOFOLLOW)
  /// `O_NONBLOCK`; opening a FIFO then does not wait for a writer.
  public static let nonBlocking = OpenFlags(rawValue: O_NONBLOCK)
  /// `O_APPEND`.
  public static let append = OpenFlags(rawValue: O_APPEND)
  /// `O_DIRECT`.
  public static let direct = OpenFlags(rawValue: CInt(linux_O_DIRECT))
  /// `O_NOCTTY`.
  public static let noControllingTerminal = OpenFlags(rawValue: O_NOCTTY)
}
