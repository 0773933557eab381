import Glibc
import Posix

/// A tree whose entries are visited in the order of nftw(3), a folder's content right after the folder, and whose files are
/// read afterwards in the same order.
struct TreeInOrder {
  private var files: [CName] = []
  private var entries = 0
  private let buffer = FileBuffer()

  private static let nameOffset = MemoryLayout<dirent>.offset(of: \.d_name) ?? 0

  /// Visits everything below the current folder.
  /// - Returns: the number of entries.
  mutating func walk() throws(Failure) -> Int {
    try walk(AT_FDCWD, ".", "")
    return entries
  }

  /// - Returns: the number of files.
  func readAll() throws(Failure) -> Int {
    for file in files where !buffer.read(file) { throw Failure(refused: String(cString: file)) }
    return files.count
  }

  private mutating func walk(_ parent: CInt, _ name: CName, _ path: String) throws(Failure) {
    let descriptor = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    guard descriptor >= 0, let folder = fdopendir(descriptor) else { throw Failure(refused: path) }
    defer { closedir(folder) }
    while let entry = readdir(folder) {
      // A record may be shorter than `dirent`, so its name must not be accessed through a copy.
      let name = (UnsafeRawPointer(entry) + Self.nameOffset).assumingMemoryBound(to: CChar.self)
      if strcmp(name, ".") == 0 || strcmp(name, "..") == 0 { continue }
      let below = path + String(cString: name)
      var attributes = stat()
      guard fstatat(descriptor, name, &attributes, AT_SYMLINK_NOFOLLOW) == 0 else {
        throw Failure(refused: below)
      }
      entries += 1
      switch attributes.st_mode & S_IFMT {
      case S_IFDIR: try walk(descriptor, name, below + "/")
      case S_IFREG: if let copy = strdup(below) { files.append(copy) }
      default: break
      }
    }
  }
}
