import Glibc
import Posix

/// What is done to a layer.
enum ChangeKind: String, CaseIterable {
  /// A file is written over in place, its size kept.
  case modify
  /// A new file is renamed over the old.
  case replace
  /// A file appears in the substitution that the main layer has, too; its folder as well, at times.
  case appear = "override"
  /// It goes away again.
  case fallBack = "fallback"
  case create
  case delete
  /// An entry comes, or goes; what counts is the listing of its folder.
  case list
}

/// The delays from a finished change in a layer to its being seen through the mount.
struct Delays {
  let main: String
  let substitution: String
  let mount: String

  /// After so long, in nanoseconds, a change is given up.
  private static let patience = 1_500_000_000
  /// Before each change the machine is left alone for so long, in microseconds.
  private static let rest: UInt32 = 2_000
  private static let filesInFolder = 20

  /// Makes the layers as they are before the changes.
  func prepare(_ changes: Int) throws(Failure) {
    for kind in ChangeKind.allCases {
      for index in 0..<changes { try subject(kind, index).prepare() }
    }
  }

  /// Makes the changes one by one, and prints for each the microseconds until it was seen, or `never`.
  func measure(_ kind: ChangeKind, _ changes: Int) throws(Failure) {
    for index in 0..<changes {
      let time = try delay(of: subject(kind, index))
      print(time.map { "\(Double($0) / 1000)" } ?? "never")
    }
  }

  private func subject(_ kind: ChangeKind, _ index: Int) -> Subject {
    let folder = "/\(kind.rawValue)/\(index / Self.filesInFolder)"
    return Subject(
      kind: kind, index: index,
      main: Place(main + folder, "\(index)"), substitution: Place(substitution + folder, "\(index)"),
      mount: Place(mount + folder, "\(index)"))
  }

  /// The nanoseconds until the change was seen; nil: given up, or what was before never showed.
  private func delay(of subject: Subject) throws(Failure) -> Int? {
    let view = View(subject.mount)
    let before = try subject.before()
    guard Self.time(until: { view.shows(before) }) != nil else { return nil }
    // The cache has all of it now: the file's attributes and content, the folder's and the listing.
    view.warm()
    usleep(Self.rest)
    try subject.change()
    let start = now()
    let after = try subject.after()
    return Self.time(since: start, until: { view.shows(after) })
  }

  private static func time(since start: Int = now(), until condition: () -> Bool) -> Int? {
    while true {
      let isTrue = condition()
      let time = now() - start
      if isTrue { return time }
      if time > patience { return nil }
    }
  }
}

/// One file in one tree, its paths ready for the system calls; they live as long as the process.
struct Place {
  let folder: CName
  let name: CName
  let file: CName
  /// Beside the file: where an editor writes what it then renames.
  let draft: CName

  init(_ folder: String, _ name: String) {
    self.folder = Self.lasting(folder)
    self.name = Self.lasting(name)
    file = Self.lasting("\(folder)/\(name)")
    draft = Self.lasting("\(folder)/.\(name).new")
  }

  private static func lasting(_ text: String) -> CName {
    guard let copy = strdup(text) else { fatalError("no memory") }
    return UnsafePointer(copy)
  }
}
