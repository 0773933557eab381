import Glibc
import Posix

/// A walk like that of find(1): lists each folder, stats its entries, then walks its subfolders.
struct Walk {
  /// Whether to read each file, like `grep -r`.
  let reads: Bool
  private let buffer = FileBuffer()
  private var entries = 0

  private static let nameOffset = MemoryLayout<dirent>.offset(of: \.d_name) ?? 0

  init(reads: Bool) {
    self.reads = reads
  }

  /// Walks everything below a folder.
  /// - Returns: the number of entries.
  mutating func run(_ root: CName) throws(Failure) -> Int {
    entries = 0
    try walk(AT_FDCWD, root)
    return entries
  }

  private mutating func walk(_ parent: CInt, _ name: CName) throws(Failure) {
    let descriptor = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    guard descriptor >= 0, let folder = fdopendir(descriptor) else { throw Self.refused(name) }
    defer { closedir(folder) }
    var folders: [UnsafeMutablePointer<CChar>] = []
    defer { for folder in folders { free(folder) } }
    while let entry = readdir(folder) {
      // A record may be shorter than `dirent`, so its name must not be accessed through a copy.
      let name = (UnsafeRawPointer(entry) + Self.nameOffset).assumingMemoryBound(to: CChar.self)
      if strcmp(name, ".") == 0 || strcmp(name, "..") == 0 { continue }
      if try visit(name, descriptor), let copy = strdup(name) { folders.append(copy) }
    }
    for folder in folders { try walk(descriptor, folder) }
  }

  /// Stats the entry and reads it if requested.
  /// - Returns: whether it is a folder.
  private mutating func visit(_ name: CName, _ folder: CInt) throws(Failure) -> Bool {
    var attributes = stat()
    guard fstatat(folder, name, &attributes, AT_SYMLINK_NOFOLLOW) == 0 else { throw Self.refused(name) }
    entries += 1
    let type = attributes.st_mode & S_IFMT
    if reads && type == S_IFREG && !buffer.read(name, in: folder) { throw Self.refused(name) }
    return type == S_IFDIR
  }

  private static func refused(_ name: CName) -> Failure {
    Failure(refused: "walking, \(String(cString: name))")
  }
}
