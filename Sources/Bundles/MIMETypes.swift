import Glibc
import Posix

/// The MIME types of files: by name, else by the first bytes.
///
/// The databases are opened at once, and read when the first type is asked for: by then a mount of ours may lie over
/// them, which must not ask itself. Files that are absent are empty.
public final class MIMETypes: Sendable {
  /// Where the databases are.
  public struct Paths: Sendable {
    /// Files `globs2` of shared-mime-info, the most important first.
    public var globs: [[UInt8]]
    /// Files like `/etc/mime.types`, the most important first; they are looked at after all globs.
    public var types: [[UInt8]]

    /// Databases of one's own.
    public init(globs: [[UInt8]], types: [[UInt8]]) {
      self.globs = globs
      self.types = types
    }

    /// The system's.
    public static let system = Paths(
      globs: ["/usr/local/share/mime/globs2", "/usr/share/mime/globs2"].map { Array($0.utf8) },
      types: [Array("/etc/mime.types".utf8)])
  }

  /// As many first bytes as a type is told by where no name tells it.
  public static let leadingCount = 128

  private enum State {
    case opened(globs: [DatabaseFile], types: [DatabaseFile])
    case read(Databases)
  }

  private let state: Locked<State>

  /// The types that the databases at the paths tell.
  public init(paths: Paths = .system) {
    state = Locked(
      .opened(globs: paths.globs.map { DatabaseFile($0) }, types: paths.types.map { DatabaseFile($0) }))
  }

  /// The type of a regular file.
  /// - Parameters:
  ///   - name: the last component of its path.
  ///   - attribute: the value of its xattr `user.mime_type`, which wins if it has the form of a type.
  ///   - leading: its first ``leadingCount`` bytes or more; asked for only where the name tells nothing.
  public func type<Failure: Error>(
    for name: [UInt8], attribute: [UInt8]? = nil, leading: () throws(Failure) -> [UInt8]
  ) throws(Failure) -> String {
    if let attribute, let type = Self.type(inAttribute: attribute) { return type }
    if let type = type(forName: name) { return type }
    return Self.type(ofContent: try leading())
  }

  /// The type that a name tells; nil if it tells none.
  public func type(forName name: [UInt8]) -> String? {
    let databases = loaded()
    return databases.globs.type(for: name) ?? databases.types.type(for: name)
  }

  /// `text/plain` if the first bytes hold no control characters but those of text, or begin with a byte order
  /// mark; else `application/octet-stream`.
  public static func type(ofContent leading: [UInt8]) -> String {
    if TextEncoding.byMark(leading) != nil { return "text/plain" }
    return leading.prefix(leadingCount).allSatisfy(isText) ? "text/plain" : "application/octet-stream"
  }

  /// The type of what is no regular file, in shared-mime-info's words.
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

  /// The type in the value of `user.mime_type`; nil if it is none. White space and a NUL around it do not
  /// count, nor do parameters (`; charset=…`).
  public static func type(inAttribute value: [UInt8]) -> String? {
    let type = value.prefix { $0 != UInt8(ascii: ";") }.split { $0 <= 0x20 }
    guard type.count == 1, let only = type.first, only.count <= 255 else { return nil }
    let parts = only.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty && $0.allSatisfy(isTokenCharacter) }) else {
      return nil
    }
    return String(decoding: only, as: UTF8.self)
  }

  /// Tab, line feed, form feed, carriage return, escape, and all that is printed.
  private static func isText(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x09, 0x0A, 0x0C, 0x0D, 0x1B: true
    default: byte >= 0x20 && byte != 0x7F
    }
  }

  /// What names of types are made of (RFC 2045, section 5.1).
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

/// The databases as they were read.
private final class Databases: Sendable {
  let globs: GlobTable
  let types: ExtensionTable

  init(globs: [DatabaseFile], types: [DatabaseFile]) {
    self.globs = GlobTable(files: globs.map { $0.content })
    self.types = ExtensionTable(files: types.map { $0.content })
  }
}

/// A database's file, which is open.
private final class DatabaseFile: Sendable {
  /// nil without such a file.
  private let file: Descriptor?

  init(_ path: [UInt8]) {
    file = path.contains(0) ? nil : try? withCName(path) { path throws(Errno) in try Self.open(path) }
  }

  private static func open(_ path: CName) throws(Errno) -> Descriptor {
    let file = try Descriptor.open(path, [.read, .nonBlocking, .noControllingTerminal])
    guard try file.attributes().isRegular else { throw .invalidArgument }
    return file
  }

  var content: [UInt8] { (try? file?.readAll()) ?? [] }
}
