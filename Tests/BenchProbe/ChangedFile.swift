import Glibc
import Posix

/// The state of a file that a mount should show.
enum ExpectedState {
  /// The attributes and content of a layer's file.
  case file(size: Int, modified: timespec, content: Content)
  /// The file does not exist.
  case nothing
  /// Whether the folder's listing contains it.
  case listed(Bool)
}

/// The file of one change, in the layers and the mount.
struct ChangedFile {
  let kind: ChangeKind
  let index: Int
  let main: FilePaths
  let substitution: FilePaths
  let mount: FilePaths

  /// Changes alternate between the layers.
  private var isInSubstitution: Bool { (kind == .list ? index / 2 : index) % 2 == 1 }
  private var layer: FilePaths { isInSubstitution ? substitution : main }
  /// Entries alternately appear and vanish.
  private var isToBeListed: Bool { index % 2 == 0 }

  /// Files made in the same clock tick may have the same mtime; the sizes distinguish the versions.
  private func content(_ version: Int) -> Content {
    Content(
      stamp: "\(kind.rawValue) \(index) \(version) ",
      size: Content.largest - (kind == .modify ? 0 : version))
  }

  /// Makes the files before the change.
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

  /// The expected state before the change.
  func before() throws(Failure) -> ExpectedState {
    switch kind {
    case .modify, .replace: try state(of: layer, isInSubstitution ? 1 : 0)
    case .appear: try state(of: main, 0)
    case .fallBack: try state(of: substitution, 1)
    case .create: .nothing
    case .delete: try state(of: layer, 0)
    case .list: .listed(!isToBeListed)
    }
  }

  /// Makes the change, completely before this returns.
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

  /// The expected state after the change.
  func after() throws(Failure) -> ExpectedState {
    switch kind {
    case .modify, .replace, .create: try state(of: layer, 2)
    case .appear: try state(of: substitution, 2)
    case .fallBack: try state(of: main, 0)
    case .delete: .nothing
    case .list: .listed(isToBeListed)
    }
  }

  private func state(of paths: FilePaths, _ version: Int) throws(Failure) -> ExpectedState {
    var attributes = stat()
    guard stat(paths.file, &attributes) == 0 else { throw Failure(refused: String(cString: paths.file)) }
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

/// The content of a file: a repeated stamp.
final class Content {
  static let largest = 4096
  private let bytes: UnsafeMutableRawBufferPointer

  init(stamp: String, size: Int) {
    bytes = .allocate(byteCount: size, alignment: 16)
    let stamp = Array(stamp.utf8)
    for index in bytes.indices { bytes[index] = stamp[index % stamp.count] }
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

/// A file in the mount.
struct MountView {
  nonisolated(unsafe) private static let buffer = UnsafeMutableRawBufferPointer.allocate(
    byteCount: Content.largest + 1, alignment: 16)
  private let paths: FilePaths

  init(_ paths: FilePaths) { self.paths = paths }

  /// Fills the kernel's caches. The attributes come last because a READ invalidates the cached atime.
  func warm() {
    _ = isListed
    _ = read()
    var attributes = stat()
    _ = stat(paths.folder, &attributes)
    _ = stat(paths.file, &attributes)
  }

  /// Whether the mount shows this state in its attributes, content and listing.
  func shows(_ state: ExpectedState) -> Bool {
    var attributes = stat()
    switch state {
    case .file(let size, let modified, let content):
      return stat(paths.file, &attributes) == 0 && attributes.st_size == size
        && attributes.st_mtim.tv_nsec == modified.tv_nsec
        && attributes.st_mtim.tv_sec == modified.tv_sec && content.equals(Self.buffer, read())
    case .nothing:
      return stat(paths.file, &attributes) != 0 && errno == ENOENT && read() < 0 && errno == ENOENT
    case .listed(let isListed):
      return self.isListed == isListed
    }
  }

  /// Reads the file into the buffer.
  /// - Returns: the number of bytes; -1 with errno on failure.
  private func read() -> Int {
    let file = open(paths.file, O_RDONLY)
    guard file >= 0 else { return -1 }
    defer { close(file) }
    return Glibc.read(file, Self.buffer.baseAddress, Self.buffer.count)
  }

  /// Whether the folder's listing contains the name; nil if it cannot be listed.
  private var isListed: Bool? {
    guard let folder = opendir(paths.folder) else { return nil }
    defer { closedir(folder) }
    while let entry = readdir(folder) {
      let name = UnsafeRawPointer(entry) + 19  // d_ino, d_off, d_reclen and d_type come before
      if strcmp(name.assumingMemoryBound(to: CChar.self), paths.name) == 0 { return true }
    }
    return false
  }
}
