import Glibc
import Posix
import TestSupport

/// What keeps inotify from reporting the changes of a random stack.
enum Degradation {
  case none
  /// Few directories can be watched.
  case fewWatches
  /// The event queue holds 16 events, and the daemon does not read them during changes.
  case shortQueue
  /// Some layers lie on FUSE.
  case fuse
  /// The daemon's worker dies now and then.
  case deaths

  /// Lowers a limit of the kernel for the daemon that is started next; nil without one.
  func limit(using random: inout SplitMix64) throws -> KernelLimit? {
    switch self {
    case .none, .fuse, .deaths: nil
    case .fewWatches: try .watches(random.number(0...30))
    case .shortQueue: try .queuedEvents(16)
    }
  }

  /// Whether the limit matters only when the daemon starts.
  var isReadAtStart: Bool { self == .shortQueue }

  /// When a worker dies.
  enum Death { case none, beforeChanges, afterChanges }

  func death(using random: inout SplitMix64) -> Death {
    if self != .deaths || random.percent(50) { return .none }
    return random.percent(50) ? .beforeChanges : .afterChanges
  }

  /// Makes changes to the layers.
  func change(_ mount: Mount, _ death: Death, _ body: () throws -> Void) throws {
    if self == .shortQueue { mount.signalWorker(SIGSTOP) }
    defer { if self == .shortQueue { mount.signalWorker(SIGCONT) } }
    if death == .beforeChanges { mount.signalWorker(SIGKILL) }
    try body()
    if death == .afterChanges { mount.signalWorker(SIGKILL) }
  }

  /// The folders to mount in place of the layers, some of them by bindfs(1).
  func views(_ roots: [ByteString], in folder: TemporaryFolder, _ random: inout SplitMix64) throws
    -> [BindMount]
  {
    if self != .fuse { return roots.map { BindMount(plain: $0) } }
    let always = random.number(0...roots.count - 1)
    return try roots.enumerated().map { index, root in
      if index != always, random.percent(50) { return BindMount(plain: root) }
      return try BindMount(root, at: folder.folder(ByteString("fuse\(index)")))
    }
  }
}

/// A folder, or a view of it on FUSE by bindfs(1), unmounted with this object.
final class BindMount {
  let path: ByteString
  private let process: Child?

  init(plain path: ByteString) {
    self.path = path
    process = nil
  }

  /// Nothing is cached, so that a change of the folder is seen at once.
  init(_ folder: ByteString, at path: ByteString) throws {
    self.path = path
    let device = try path.status().device
    let options: ByteString =
      "attr_timeout=0,entry_timeout=0,negative_timeout=0,ac_attr_timeout=0,direct_io,hard_remove"
    process = try Child(Command(["bindfs", "-f", "-o", options, folder, path]))
    let isMounted = eventually(within: 20) {
      // It fails while bindfs starts.
      (try? path.status().device) ?? device != device || process?.status() != nil
    }
    if !isMounted || process?.status() != nil {
      throw TestFailure("bindfs \(path): \(process?.errorText ?? "")")
    }
  }

  deinit {
    if process == nil { return }
    _ = try? Command("umount", "-l", path.text).run()
    _ = try? process?.wait(timeout: 10)
  }
}
