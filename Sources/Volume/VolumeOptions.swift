import Layers

/// What the user chose for a mount.
public struct VolumeOptions: Sendable {
  /// Whether extended attributes are served; if not, they are declined once, and the kernel stops asking.
  public var servesExtendedAttributes = true
  /// How many descriptors of files and directories may be kept open at once.
  public var descriptorBudget = 1024
  /// For how long the kernel may keep what it is told.
  public var cache = CacheMode.coherent
  /// The control file.
  public var control = ControlOptions()
  /// The bundle's resources.
  public var resources = ResourceSettings()
  /// The most bytes of a READ; nil: as many as the kernel likes.
  public var maxRead: UInt32?
  /// From which size on, in bytes, files are read by the kernel itself where that can be had; nil for none.
  public var passthrough: UInt64?
  /// The unpacked contents of archives; nil where no layer is one.
  public var contents: ContentCache?
  /// Whether programs that watch the mount are told of what changes beneath it.
  public var announce = AnnounceMode.on

  /// The defaults.
  public init() {}
}
