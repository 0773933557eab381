import Glibc
import Posix

/// A kind of change to a layer.
enum ChangeKind: String, CaseIterable {
  /// A file is overwritten in place with the same size.
  case modify
  /// A new file is renamed over the old one.
  case replace
  /// A file that MAIN has appears in the substitution, sometimes with its folder.
  case appear = "override"
  /// A file that MAIN has vanishes from the substitution.
  case fallBack = "fallback"
  case create
  case delete
  /// An entry appears or vanishes in the listing of its folder.
  case list
}

/// Measures the delay from a completed change in a layer to its visibility in the mount.
struct Delays {
  let main: String
  let substitution: String
  let mount: String

  /// Nanoseconds after which a change counts as never visible.
  private static let timeout = 1_500_000_000
  /// The pause before each change, in microseconds.
  private static let pause: UInt32 = 2_000
  private static let filesInFolder = 20

  /// Makes the layers before the changes.
  func prepare(_ changes: Int) throws(Failure) {
    for kind in ChangeKind.allCases {
      for index in 0..<changes { try file(kind, index).prepare() }
    }
  }

  /// Makes the changes and prints for each the microseconds until it is visible, or `never`.
  func measure(_ kind: ChangeKind, _ changes: Int) throws(Failure) {
    for index in 0..<changes {
      let time = try delay(of: file(kind, index))
      print(time.map { "\(Double($0) / 1000)" } ?? "never")
    }
  }

  private func file(_ kind: ChangeKind, _ index: Int) -> ChangedFile {
    let folder = "/\(kind.rawValue)/\(index / Self.filesInFolder)"
    return ChangedFile(
      kind: kind, index: index,
      main: FilePaths(main + folder, "\(index)"), substitution: FilePaths(substitution + folder, "\(index)"),
      mount: FilePaths(mount + folder, "\(index)"))
  }

  /// The nanoseconds until the change is visible; nil after a timeout, also if the initial state never appears.
  private func delay(of file: ChangedFile) throws(Failure) -> Int? {
    let view = MountView(file.mount)
    let before = try file.before()
    guard Self.time(until: { view.shows(before) }) != nil else { return nil }
    // Caches the attributes and content of the file, and the attributes and listing of the folder.
    view.warm()
    usleep(Self.pause)
    try file.change()
    let start = now()
    let after = try file.after()
    return Self.time(since: start, until: { view.shows(after) })
  }

  private static func time(since start: Int = now(), until condition: () -> Bool) -> Int? {
    while true {
      let isTrue = condition()
      let time = now() - start
      if isTrue { return time }
      if time > timeout { return nil }
    }
  }
}

/// The C paths of one file in one tree. They are never freed.
struct FilePaths {
  let folder: CName
  let name: CName
  let file: CName
  /// The temporary file beside it that an editor would rename.
  let draft: CName

  init(_ folder: String, _ name: String) {
    self.folder = Self.copy(folder)
    self.name = Self.copy(name)
    file = Self.copy("\(folder)/\(name)")
    draft = Self.copy("\(folder)/.\(name).new")
  }

  private static func copy(_ text: String) -> CName {
    guard let copy = strdup(text) else { fatalError("out of memory") }
    return UnsafePointer(copy)
  }
}
