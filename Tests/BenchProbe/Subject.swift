import Glibc
import Posix

/// What a mount is to show of a file.
enum Sight {
  /// Attributes and content are those of a layer's file.
  case file(size: Int, modified: timespec, content: Content)
  /// There is none.
  case nothing
  /// Whether the folder's listing has it.
  case listed(Bool)
}

/// The file that one change is about, in the layers and the mount.
struct Subject {
  let kind: ChangeKind
  let index: Int
  let main: Place
  let substitution: Place
  let mount: Place

  /// The changes take turns between the layers.
  private var isInSubstitution: Bool { (kind == .list ? index / 2 : index) % 2 == 1 }
  private var layer: Place { isInSubstitution ? substitution : main }
  /// Entries come and go in turn.
  private var isToBeListed: Bool { index % 2 == 0 }

  /// Files made at one tick of the clock may share their time; the sizes tell the versions apart.
  private func content(_ version: Int) -> Content {
    Content(
      stamp: "\(kind.rawValue) \(index) \(version) ",
      size: Content.largest - (kind == .modify ? 0 : version))
  }

  /// Makes what is there before the change.
  func prepare() throws(Failure) {
    try makeFolders(main.folder)
    if kind != .appear { try makeFolders(substitution.folder) }
    switch kind {
    case .modify, .replace:
      try content(0).write(to: main.file)
      if isInSubstitution { try content(1).write(to: substitution.file) }
    case .appear:
      try content(0).write(to: main.file)
    case .fallBack:
      try content(0).write(to: main.file)
      try content(1).write(to: substitution.file)
    case .create: break
    case .delete:
      try content(0).write(to: layer.file)
    case .list:
      if !isToBeListed { try content(0).write(to: layer.file) }
    }
  }

  /// What the mount shows before the change.
  func before() throws(Failure) -> Sight {
    switch kind {
    case .modify, .replace: try sight(of: layer, isInSubstitution ? 1 : 0)
    case .appear: try sight(of: main, 0)
    case .fallBack: try sight(of: substitution, 1)
    case .create: .nothing
    case .delete: try sight(of: layer, 0)
    case .list: .listed(!isToBeListed)
    }
  }

  /// Makes the change; when this returns, it is finished.
  func change() throws(Failure) {
    switch kind {
    case .modify:
      try content(2).write(to: layer.file, O_WRONLY)
    case .replace:
      try content(2).write(to: layer.draft)
      guard rename(layer.draft, layer.file) == 0 else { throw Failure(refused: "rename") }
    case .appear:
      try makeFolders(substitution.folder)
      try content(2).write(to: substitution.file)
    case .fallBack:
      try remove(substitution.file)
    case .create:
      try content(2).write(to: layer.file)
    case .delete:
      try remove(layer.file)
    case .list:
      if isToBeListed { try content(2).write(to: layer.file) } else { try remove(layer.file) }
    }
  }

  /// What the mount shows once the change is seen.
  func after() throws(Failure) -> Sight {
    switch kind {
    case .modify, .replace, .create: try sight(of: layer, 2)
    case .appear: try sight(of: substitution, 2)
    case .fallBack: try sight(of: main, 0)
    case .delete: .nothing
    case .list: .listed(isToBeListed)
    }
  }

  private func sight(of place: Place, _ version: Int) throws(Failure) -> Sight {
    var attributes = stat()
    guard stat(place.file, &attributes) == 0 else { throw Failure(refused: String(cString: place.file)) }
    return .file(size: attributes.st_size, modified: attributes.st_mtim, content: content(version))
  }

  private func remove(_ file: CName) throws(Failure) {
    guard unlink(file) == 0 else { throw Failure(refused: String(cString: file)) }
  }

  private func makeFolders(_ path: CName) throws(Failure) {
    if mkdir(path, 0o755) == 0 || errno == EEXIST { return }
    let text = String(cString: path)
    guard errno == ENOENT, let slash = text.lastIndex(of: "/") else { throw Failure(refused: text) }
    let parent = String(text[..<slash])
    guard mkdir(parent, 0o755) == 0, mkdir(path, 0o755) == 0 else { throw Failure(refused: text) }
  }
}

/// What a file holds: a stamp over and over.
final class Content {
  static let largest = 4096
  private let bytes: UnsafeMutableRawBufferPointer

  init(stamp: String, size: Int) {
    bytes = .allocate(byteCount: size, alignment: 16)
    let stamp = Array(stamp.utf8)
    for place in bytes.indices { bytes[place] = stamp[place % stamp.count] }
  }

  deinit { bytes.deallocate() }

  func write(to path: CName, _ flags: CInt = O_WRONLY | O_CREAT | O_EXCL) throws(Failure) {
    let file = open(path, flags, 0o644)
    guard file >= 0 else { throw Failure(refused: String(cString: path)) }
    let count = Glibc.write(file, bytes.baseAddress, bytes.count)
    guard close(file) == 0, count == bytes.count else { throw Failure(refused: String(cString: path)) }
  }

  func equals(_ other: UnsafeMutableRawBufferPointer, _ count: Int) -> Bool {
    guard count == bytes.count, let left = bytes.baseAddress, let right = other.baseAddress else {
      return false
    }
    return memcmp(left, right, count) == 0
  }
}

/// A file seen through the mount.
struct View {
  nonisolated(unsafe) private static let buffer = UnsafeMutableRawBufferPointer.allocate(
    byteCount: Content.largest + 1, alignment: 16)
  private let place: Place

  init(_ place: Place) { self.place = place }

  /// Brings into the caches whatever they would keep. The attributes come last, since the kernel asks for
  /// them anew after a read: the time of access may have changed.
  func warm() {
    _ = isListed
    _ = read()
    var attributes = stat()
    _ = stat(place.folder, &attributes)
    _ = stat(place.file, &attributes)
  }

  /// Whether the mount shows this, in every way.
  func shows(_ sight: Sight) -> Bool {
    var attributes = stat()
    switch sight {
    case .file(let size, let modified, let content):
      return stat(place.file, &attributes) == 0 && attributes.st_size == size
        && attributes.st_mtim.tv_nsec == modified.tv_nsec
        && attributes.st_mtim.tv_sec == modified.tv_sec && content.equals(Self.buffer, read())
    case .nothing:
      return stat(place.file, &attributes) != 0 && errno == ENOENT && read() < 0 && errno == ENOENT
    case .listed(let isListed):
      return self.isListed == isListed
    }
  }

  /// Reads the file into the buffer; the count of bytes, -1 and errno for a failure.
  private func read() -> Int {
    let file = open(place.file, O_RDONLY)
    guard file >= 0 else { return -1 }
    defer { close(file) }
    return Glibc.read(file, Self.buffer.baseAddress, Self.buffer.count)
  }

  /// Whether the folder's listing has the name; nil: there is no listing.
  private var isListed: Bool? {
    guard let folder = opendir(place.folder) else { return nil }
    defer { closedir(folder) }
    while let entry = readdir(folder) {
      let name = UnsafeRawPointer(entry) + 19  // d_ino, d_off, d_reclen and d_type come before
      if strcmp(name.assumingMemoryBound(to: CChar.self), place.name) == 0 { return true }
    }
    return false
  }
}
