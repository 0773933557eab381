import ControlClient
import Glibc
import Layers
import Posix
import Routing

/// Walks a mount's tree. The daemon compares each directory with the layers, since they may be out of reach of the
/// command, for instance below a mount over MAIN.
struct ComparisonWalker: ~Copyable {
  struct Entry {
    let path: [[UInt8]]
    let name: ComparedName
    /// For each directory on the path and for the entry itself, whether it is the last one in its parent.
    let isLast: [Bool]

    var shownPath: String { shown(path.joinedPath) }
    var shownName: String { shown(name.name) }

    private func shown(_ bytes: [UInt8]) -> String {
      String(printing: bytes) + (name.kind == .directory ? "/" : "")
    }
  }

  struct Fault {
    let path: [[UInt8]]
    let error: Errno

    var reason: String {
      switch error {
      case .fileTooLarge: "it has more entries than one reply can hold (4 MB)"
      case .permissionDenied: "only root and the mount's owner may compare directories that they can open"
      case Errno(rawValue: EXDEV): "another file system is mounted there"
      default: "\(error)"
      }
    }
  }

  private struct Frame {
    var remaining: ArraySlice<ComparedName>
    /// nil if it was closed because the stack is too deep.
    var directory: SharedDescriptor?
  }

  private struct Position {
    private static let maxOpenDirectories = 64

    private(set) var path: [[UInt8]]
    private(set) var isLast: [Bool] = []
    private var frames: [Frame]

    init(start: [[UInt8]], _ frame: Frame) { (path, frames) = (start, [frame]) }

    var directory: SharedDescriptor? { frames.last?.directory }

    /// Advances to the next entry of the innermost directory that has one left.
    mutating func next() -> ComparedName? {
      while !frames.isEmpty {
        if let name = frames[frames.count - 1].remaining.popFirst() {
          path.append(name.name)
          isLast.append(frames[frames.count - 1].remaining.isEmpty)
          return name
        }
        frames.removeLast()
        if !frames.isEmpty { leave() }
      }
      return nil
    }

    mutating func enter(_ frame: Frame) {
      frames.append(frame)
      let excess = frames.count - Self.maxOpenDirectories
      if excess > 0 { frames[excess - 1].directory = nil }
    }

    mutating func leave() {
      path.removeLast()
      isLast.removeLast()
    }
  }

  /// The layers' paths, top first.
  let layers: [String]
  let start: [[UInt8]]
  private(set) var tally: ComparisonTally
  private(set) var faults: [Fault] = []
  private let root: Descriptor
  private let device: UInt64
  private let form: StatusProtocol.Form
  private var progress: ProgressBar?
  /// nil before the start.
  private var position: Position?
  private var directories = 0

  /// - Parameter includesUnchanged: whether unchanged files of MAIN are entries, too.
  init(
    of mountPoint: MountPoint, from start: [[UInt8]], includesUnchanged: Bool, showsProgress: Bool
  ) throws(Errno) {
    let root = try mountPoint.open([.read, .directory])
    let (device, layers) = (try root.attributes().identity.device, try Self.layers(of: root))
    self.root = root
    (self.device, self.layers, self.start) = (device, layers, start)
    tally = ComparisonTally(layers: layers.count)
    form = includesUnchanged ? .entries : .differences
    progress = showsProgress ? ProgressBar(title: "comparing:") : nil
  }

  private static func layers(of root: borrowing Descriptor) throws(Errno) -> [String] {
    let status = JSONValue(try StatusClient.read(.json, of: root))
    guard case .array(let layers) = status?["layers"] else { throw Errno(rawValue: EPROTO) }
    return layers.map { $0["path"]?.string ?? "?" }
  }

  /// Visits every entry below the start, sorted by name, a directory before its contents.
  /// - Throws: if the start cannot be compared. Directories further down become ``faults``.
  mutating func walk(_ visit: (Entry) -> Void) throws(Errno) {
    try begin()
    while let entry = next() { visit(entry) }
  }

  /// Begins a walk whose entries `next` returns.
  /// - Throws: as `walk`.
  mutating func begin() throws(Errno) {
    let first = SharedDescriptor(try directory(at: start))
    position = Position(start: start, Frame(remaining: try names(in: first)[...], directory: first))
  }

  /// The next entry; nil at the end.
  mutating func next() -> Entry? {
    guard let name = position?.next(), let path = position?.path, let isLast = position?.isLast else {
      progress?.end()
      return nil
    }
    tally.add(name)
    let isOpened =
      name.kind == .directory && name.status != .hidden && name.status != .collision
      && name.status != .excluded
    if isOpened, let child = frame(at: path, in: position?.directory) {
      directories += 1
      progress?.show("\(directories) directories")
      position?.enter(child)
    } else {
      position?.leave()
    }
    return Entry(path: path, name: name, isLast: isLast)
  }

  /// What is at a path; nil if no layer has it.
  /// - Throws: ENOENT where its directory is not visible.
  mutating func name(at path: [[UInt8]]) throws(Errno) -> ComparedName? {
    let directory = SharedDescriptor(try directory(at: path.dropLast()))
    return try names(in: directory).first { $0.name == path.last }
  }

  private mutating func frame(at path: [[UInt8]], in parent: SharedDescriptor?) -> Frame? {
    do throws(Errno) {
      let directory: SharedDescriptor
      if let parent, let name = path.last {
        directory = SharedDescriptor(try subdirectory(name, of: parent.descriptor))
      } else {
        directory = SharedDescriptor(try self.directory(at: path))
      }
      return Frame(remaining: try names(in: directory)[...], directory: directory)
    } catch {
      // ENOENT: the directory was removed during the walk.
      if error != .noSuchFileOrDirectory { faults.append(Fault(path: path, error: error)) }
      return nil
    }
  }

  private mutating func names(in directory: SharedDescriptor) throws(Errno) -> [ComparedName] {
    let text = ComparisonText(try StatusClient.read(form, of: directory.descriptor))
    guard let text, text.names.allSatisfy({ $0.layers.allSatisfy(layers.indices.contains) }) else {
      throw Errno(rawValue: EPROTO)
    }
    tally.unchanged &+= text.unchanged
    return text.names
  }

  /// Opens one component at a time, so that symbolic links are not followed and PATH_MAX does not apply.
  private func directory(at path: [[UInt8]]) throws(Errno) -> Descriptor {
    var directory = try root.open(".", [.read, .directory])
    for name in path { directory = try subdirectory(name, of: directory) }
    return directory
  }

  /// - Throws: EXDEV where another file system is mounted.
  private func subdirectory(_ name: [UInt8], of parent: borrowing Descriptor) throws(Errno) -> Descriptor {
    let directory = try parent.open(name, [.read, .directory, .noFollow])
    guard try directory.attributes().identity.device == device else { throw Errno(rawValue: EXDEV) }
    return directory
  }
}
