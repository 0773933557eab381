/// A request of ioctl(2) for the flags of a file or directory, as lsattr(1) and chattr(1) make them (ioctl_iflags(2)).
public struct FileFlagsRequest: Sendable {
  /// The ioctl number, with the size of a long.
  public let command: UInt32
  /// The size in bytes of what it reads or sets, which begins with the flags.
  public let size: Int
  /// The bits for "immutable" and "append only", which take `CAP_LINUX_IMMUTABLE` to be set and cleared.
  public let protection: UInt32
  /// Whether it sets the flags.
  public let isChange: Bool
  /// The request that reads what this one sets.
  private let reader: UInt32

  /// FS_IOC_GETFLAGS, FS_IOC_SETFLAGS; the kernel passes an int.
  fileprivate static let (getFlags, setFlags, flags): (UInt32, UInt32, UInt32) = (
    0x8008_6601, 0x4008_6602, 0x30
  )
  /// FS_IOC_FSGETXATTR, FS_IOC_FSSETXATTR, with a struct fsxattr.
  private static let (getExtended, setExtended, extended): (UInt32, UInt32, UInt32) = (
    0x801c_581f, 0x401c_5820, 0x18
  )
  private static let extendedSize = 28
  /// FS_APPEND_FL.
  fileprivate static let appendOnly: UInt32 = 0x20

  /// nil for another request.
  public init?(_ command: UInt32) {
    self.command = command
    switch command {
    case Self.getFlags, Self.setFlags:
      (size, protection, reader) = (MemoryLayout<UInt32>.size, Self.flags, Self.getFlags)
    case Self.getExtended, Self.setExtended:
      (size, protection, reader) = (Self.extendedSize, Self.extended, Self.getExtended)
    default: return nil
    }
    isChange = command != reader
  }

  /// The flags at the beginning of a value.
  public static func flags(in value: [UInt8]) -> UInt32 {
    value.withUnsafeBytes { $0.count < 4 ? 0 : $0.loadUnaligned(as: UInt32.self) }
  }

  /// Reads what this request reads or sets.
  /// - Parameter file: must not be opened with `O_PATH`.
  /// - Throws: ENOTTY, EOPNOTSUPP if the file system has no flags.
  public func read(_ file: borrowing Descriptor) throws(Errno) -> [UInt8] {
    try file.ioctl(reader, size: size)
  }

  /// Sets a value with other flags.
  /// - Throws: EPERM, EOPNOTSUPP.
  public func set(_ value: [UInt8], flags: UInt32, of file: borrowing Descriptor) throws(Errno) {
    var value = value
    withUnsafeBytes(of: flags) { value.replaceSubrange(0..<$0.count, with: $0) }
    try file.ioctl(command, &value)
  }
}

extension Descriptor {
  /// Sets the flag `a` of chattr(1), and leaves the others.
  /// - Throws: EPERM without `CAP_LINUX_IMMUTABLE`; ENOTTY, EOPNOTSUPP if the file system has no flags.
  public func setAppendOnly() throws(Errno) {
    guard let request = FileFlagsRequest(FileFlagsRequest.setFlags) else { return }
    let value = try request.read(self)
    try request.set(value, flags: FileFlagsRequest.flags(in: value) | FileFlagsRequest.appendOnly, of: self)
  }
}
