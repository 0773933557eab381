import Layers
import Posix

/// The user's choices for a mount.
public struct VolumeOptions: Sendable {
  /// The mount options by name, in one form of writing each, which `status` shows.
  public var shown: [(name: String, value: String)] = []
  /// Those that another mount of other layers can have, too, as `-o` takes them.
  public var reusable: [[UInt8]] = []
  /// Which extended attributes are served.
  public var extendedAttributes = ExtendedAttributeMode.on
  /// How many descriptors of files and directories may stay open.
  public var descriptorBudget = 1024
  /// How long the kernel may cache answers.
  public var cache = CacheMode.coherent
  /// The control file.
  public var control = ControlOptions()
  /// The bundle's resources.
  public var resources = ResourceSettings()
  /// The most bytes of a READ; nil for the kernel's limit.
  public var maxRead: UInt32?
  /// Bytes from which on the kernel reads files directly, where that is possible; nil for none.
  public var passthrough: UInt64?
  /// The decompressed contents of archives; nil where no layer is one.
  public var contents: ContentCache?
  /// Milliseconds after which a request no longer waits for a layer; nil: 30 s for remote layers and those on FUSE.
  public var layerTimeout: CInt?
  /// Whether a request is then answered as if the layer were empty, instead of by EIO.
  public var skipsOverdueLayers = false
  /// The layer that takes changes, which is the topmost one of the stack; nil for a read-only mount.
  public var upper: UpperLayer?
  /// The most bytes that are copied to rename a directory of layers below; 0 if none is renamed.
  public var renameCopy: UInt64 = 256 << 20
  /// Whether users may enter the mount other than the one that mounted.
  public var isShared = false
  /// The owners and permissions that are shown; nil for the layers' own. A read-only mount only.
  public var shownOwners: ShownOwners?
  /// Whether the mount is in another mount namespace: what this process finds at the mount point's path is not the mount.
  public var isElsewhere = false
  /// Whether inotify reports changes in the layers to programs that watch the mount.
  public var announce = AnnounceMode.on

  /// The times since when versions of files are visible, which are shown; nil for the files' own times.
  public var visibleTimes: VisibleTimes?

  /// Where a successor finds what the kernel knows, and what a predecessor has left there; nil if none is to come.
  public var memory: SharedMemory?
  /// What a predecessor has left unread; nil if that cannot be relied on.
  public var unreadEvents: UnreadEvents?
  /// What is known of predecessors; nil if the mount does not outlive the process.
  public var survival: (@Sendable () -> SurvivalStatus)?
  /// Why the mount cannot outlive the process although it was to.
  public var survivalObstacle: String?
  /// The change to the program that is installed now; nil if that is impossible.
  public var upgrade: Upgrade?
  /// How the substitutions are changed; nil if that is impossible.
  public var layerSwitch: LayerSwitch?

  /// The defaults.
  public init() {}
}
