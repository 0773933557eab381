import CLibrary
import Posix

/// The MIME types of files by name, or else by the first bytes.
///
/// The database files are opened at once but read on first use. A mount may cover their paths by then, and the daemon
/// must not send requests to itself. Missing files count as empty.
public final class MIMETypes: Sendable {
  /// The paths of the database files.
  public struct Paths: Sendable {
    /// shared-mime-info's `globs2` files, in order of priority.
    public var globs: [[UInt8]]
    /// Files like `/etc/mime.types`, in order of priority; used if no glob matches.
    public var types: [[UInt8]]

    /// Creates a list of paths.
    public init(globs: [[UInt8]], types: [[UInt8]]) {
      self.globs = globs
      self.types = types
    }

    /// The system's databases.
    public static let system = Paths(
      globs: ["/usr/local/share/mime/globs2", "/usr/share/mime/globs2"].map { Array($0.utf8) },
      types: [Array("/etc/mime.types".utf8)])
  }

  /// The number of bytes that detection by content examines.
  public static let leadingCount = 128

  private enum State {
    case opened(globs: [DatabaseFile], types: [DatabaseFile])
    case read(Databases)
  }

  private let state: Locked<State>

  /// Opens the databases.
  public init(paths: Paths = .system) {
    state = Locked(
      .opened(globs: paths.globs.map { DatabaseFile($0) }, types: paths.types.map { DatabaseFile($0) }))
  }

  /// The type of a regular file.
  /// - Parameters:
  ///   - name: The file name.
  ///   - attribute: The value of the extended attribute `user.mime_type`, which has priority if it is valid.
  ///   - leading: Returns the first ``leadingCount`` bytes or more; called only if the name has no type.
  public func type<Failure: Error>(
    for name: [UInt8], attribute: [UInt8]? = nil, leading: () throws(Failure) -> [UInt8]
  ) throws(Failure) -> String {
    if let attribute, let type = Self.type(inAttribute: attribute) { return type }
    if let type = type(forName: name) { return type }
    return Self.type(ofContent: try leading())
  }

  /// The type of a name; nil if it is unknown.
  public func type(forName name: [UInt8]) -> String? {
    // No file has a longer name; the search takes quadratic time.
    if name.count > 255 { return nil }
    let databases = loaded()
    return databases.globs.type(for: name) ?? databases.types.type(for: name)
  }

  /// `text/plain` if the first bytes begin with a byte order mark or have no binary control characters; otherwise
  /// `application/octet-stream`.
  public static func type(ofContent leading: [UInt8]) -> String {
    if TextEncoding.byByteOrderMark(leading) != nil { return "text/plain" }
    return leading.prefix(leadingCount).allSatisfy(isText) ? "text/plain" : "application/octet-stream"
  }

  /// shared-mime-info's type of a file kind; nil for regular files.
  public static func type(ofKind kind: FileKind) -> String? {
    switch kind {
    case .directory: "inode/directory"
    case .symbolicLink: "inode/symlink"
    case .fifo: "inode/fifo"
    case .socket: "inode/socket"
    case .characterDevice: "inode/chardevice"
    case .blockDevice: "inode/blockdevice"
    case .regular: nil
    }
  }

  /// The type in a value of `user.mime_type`; nil if it is malformed. Surrounding whitespace and NULs, and parameters
  /// (`; charset=…`), are ignored.
  public static func type(inAttribute value: [UInt8]) -> String? {
    let type = value.prefix { $0 != UInt8(ascii: ";") }.split { $0 <= 0x20 }
    guard type.count == 1, let only = type.first, only.count <= 255 else { return nil }
    let parts = only.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty && $0.allSatisfy(isTokenCharacter) }) else {
      return nil
    }
    return String(decoding: only, as: UTF8.self)
  }

  /// Tab, line feed, form feed, carriage return, escape, and non-control bytes.
  private static func isText(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x09, 0x0A, 0x0C, 0x0D, 0x1B: true
    default: byte >= 0x20 && byte != 0x7F
    }
  }

  /// Whether a byte is valid in a token (RFC 2045, section 5.1).
  private static func isTokenCharacter(_ byte: UInt8) -> Bool {
    (0x21..<0x7F).contains(byte) && !"()<>@,;:\\\"/[]?=".utf8.contains(byte)
  }

  private func loaded() -> Databases {
    state.withLock { state in
      switch state {
      case .read(let databases): return databases
      case .opened(let globs, let types):
        let databases = Databases(globs: globs, types: types)
        state = .read(databases)
        return databases
      }
    }
  }
}

private final class Databases: Sendable {
  let globs: GlobTable
  let types: ExtensionTable

  init(globs: [DatabaseFile], types: [DatabaseFile]) {
    self.globs = GlobTable(files: globs.map { $0.content })
    self.types = ExtensionTable(files: types.map { $0.content })
  }
}

private final class DatabaseFile: Sendable {
  /// nil if the file is missing.
  private let file: Descriptor?

  init(_ path: [UInt8]) {
    file = path.contains(0) ? nil : try? withCName(path) { path throws(Errno) in try Self.open(path) }
  }

  private static func open(_ path: CName) throws(Errno) -> Descriptor {
    let file = try Descriptor.open(path, [.read, .nonBlocking, .noControllingTerminal])
    guard try file.attributes().isRegular else { throw .invalidArgument }
    return file
  }

  /// A hundred times the size of the usual ones.
  private static let maxSize = 8 << 20

  /// Empty if the file cannot be read or is too large.
  var content: [UInt8] {
    guard let content = try? file?.readAll(limit: Self.maxSize), content.count <= Self.maxSize else {
      return []
    }
    return content
  }
}
