import ControlClient
import Glibc
import Layers
import Posix
import Routing

/// A mount's tree, each directory compared with what its layers have there, as the mount itself tells it: so it
/// is seen also where the layers cannot be, as beneath a mount over MAIN.
struct ComparedTree: ~Copyable {
  /// A name of the tree.
  struct Step {
    /// The names from the mount's root to it.
    let path: [[UInt8]]
    let name: ComparedName
    /// For each directory on the way and for itself, whether nothing follows in it.
    let isLast: [Bool]

    var isDirectory: Bool { name.kind == .directory }
    /// The path for a person, with `/` at the end of a directory's.
    var shown: String { String(escaping: path.joinedPath).withoutControls + (isDirectory ? "/" : "") }
    /// The name alone, likewise.
    var shownName: String { String(escaping: name.name).withoutControls + (isDirectory ? "/" : "") }
  }

  /// A directory that could not be looked at.
  struct Fault {
    let path: [[UInt8]]
    let error: Errno

    /// In words for a person.
    var reason: String {
      switch error {
      case .fileTooLarge: "it has more names than one answer holds (4 MB)"
      case .permissionDenied: "only the mount's owner and root may compare, what they may open"
      case Errno(rawValue: EXDEV): "something else is mounted there"
      default: "\(error)"
      }
    }
  }

  private final class OpenDirectory {
    let descriptor: Descriptor
    init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }
  }

  /// A directory that the walk is in.
  private struct Frame {
    /// Those still to come.
    var names: ArraySlice<ComparedName>
    /// nil where it was let go, so that a deep tree does not ask for as many descriptors.
    var directory: OpenDirectory?
  }

  /// How many directories are kept open.
  private static let mostOpen = 64

  /// The layers' paths, top first.
  let layers: [String]
  /// Where the walk begins, from the mount's root.
  let start: [[UInt8]]
  private(set) var tally: ComparisonTally
  private(set) var faults: [Fault] = []
  private let root: Descriptor
  private let device: UInt64
  private let form: StatusProtocol.Form
  private var progress: ProgressBar?

  /// - Parameters:
  ///   - isWhole: whether files that are MAIN's as they are count as names, too.
  ///   - showsProgress: whether standard error may show how far the walk is.
  init(
    of mountPoint: MountPoint, from start: [[UInt8]], isWhole: Bool, showsProgress: Bool
  ) throws(Errno) {
    let root = try mountPoint.open([.read, .directory])
    let (device, layers) = (try root.attributes().identity.device, try Self.layers(of: root))
    self.root = root
    (self.device, self.layers, self.start) = (device, layers, start)
    tally = ComparisonTally(layers: layers.count)
    form = isWhole ? .entries : .differences
    progress = showsProgress ? ProgressBar(title: "comparing:") : nil
  }

  private static func layers(of root: borrowing Descriptor) throws(Errno) -> [String] {
    let status = JSONValue(try StatusClient.read(.json, of: root))
    guard case .array(let layers) = status?["layers"] else { throw Errno(rawValue: EPROTO) }
    return layers.map { $0["path"]?.string ?? "?" }
  }

  /// Runs the body for every name below the start, sorted, a directory's before those in it.
  /// - Throws: why the start cannot be looked at. What cannot be further down is left out, see `faults`.
  mutating func walk(_ body: (Step) -> Void) throws(Errno) {
    defer { progress?.end() }
    var (path, isLast) = (start, [Bool]())
    let first = OpenDirectory(try directory(at: path))
    var frames = [Frame(names: try names(in: first)[...], directory: first)]
    var directories = 0
    while !frames.isEmpty {
      guard let name = frames[frames.count - 1].names.popFirst() else {
        frames.removeLast()
        if !frames.isEmpty { (_, _) = (path.removeLast(), isLast.removeLast()) }
        continue
      }
      path.append(name.name)
      isLast.append(frames[frames.count - 1].names.isEmpty)
      tally.add(name)
      body(Step(path: path, name: name, isLast: isLast))
      if name.kind == .directory, name.verdict != .hidden,
        let below = frame(at: path, in: frames[frames.count - 1].directory)
      {
        directories += 1
        progress?.show("\(directories) directories")
        frames.append(below)
        if frames.count > Self.mostOpen { frames[frames.count - 1 - Self.mostOpen].directory = nil }
      } else {
        (_, _) = (path.removeLast(), isLast.removeLast())
      }
    }
  }

  /// - Parameter parent: the directory above it, if it is open.
  private mutating func frame(at path: [[UInt8]], in parent: OpenDirectory?) -> Frame? {
    do throws(Errno) {
      let directory: OpenDirectory
      if let parent, let name = path.last {
        directory = OpenDirectory(try inside(parent.descriptor, name))
      } else {
        directory = OpenDirectory(try self.directory(at: path))
      }
      return Frame(names: try names(in: directory)[...], directory: directory)
    } catch {
      // It may have gone since.
      if error != .noSuchFileOrDirectory { faults.append(Fault(path: path, error: error)) }
      return nil
    }
  }

  private mutating func names(in directory: OpenDirectory) throws(Errno) -> [ComparedName] {
    let text = ComparisonText(try StatusClient.read(form, of: directory.descriptor))
    guard let text, text.names.allSatisfy({ $0.layers.allSatisfy(layers.indices.contains) }) else {
      throw Errno(rawValue: EPROTO)
    }
    tally.unchanged &+= text.unchanged
    return text.names
  }

  /// From name to name, so that neither a link nor the length of the path matters.
  private func directory(at path: [[UInt8]]) throws(Errno) -> Descriptor {
    var directory = try root.open(".", [.read, .directory])
    for name in path { directory = try inside(directory, name) }
    return directory
  }

  /// - Throws: EXDEV where something else is mounted.
  private func inside(_ directory: borrowing Descriptor, _ name: [UInt8]) throws(Errno) -> Descriptor {
    let inner = try withCName(name) { name throws(Errno) in
      try directory.open(name, [.read, .directory, .noFollow])
    }
    guard try inner.attributes().identity.device == device else { throw Errno(rawValue: EXDEV) }
    return inner
  }
}

/// How many entries are what. Directories count where they are hidden or take a file's place.
struct ComparisonTally {
  struct Layer {
    var overrides = 0
    var adds = 0
    var hides = 0
  }

  private(set) var layers: [Layer]
  var unchanged = 0

  init(layers count: Int) { layers = Array(repeating: Layer(), count: count) }

  mutating func add(_ name: ComparedName) {
    guard let layer = name.layers.first, name.isCounted else { return }
    switch name.verdict {
    case .overridden: layers[layer].overrides += 1
    case .added: layers[layer].adds += 1
    case .hidden: layers[layer].hides += 1
    // Told by the directory.
    case .unchanged: break
    }
  }

  var total: Layer {
    layers.reduce(into: Layer()) { sum, layer in
      sum.overrides += layer.overrides
      sum.adds += layer.adds
      sum.hides += layer.hides
    }
  }

  /// One line for a person.
  var shown: String {
    let total = total
    return "\(total.overrides) overridden, \(total.adds) added, \(total.hides) hidden, \(unchanged) unchanged"
  }
}

extension ComparedName {
  /// Whether it is a difference by itself. Of directories it is what is in them that differs.
  var isCounted: Bool {
    switch verdict {
    case .unchanged: false
    case .added: kind != .directory
    case .overridden, .hidden: true
    }
  }
}
