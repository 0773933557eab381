import Glibc
import Posix
import Routing

/// The folder of a user's profiles: `$XDG_CONFIG_HOME/bundlefs/profiles`, or `~/.config/bundlefs/profiles`.
struct ProfileFolder {
  let path: [UInt8]

  /// - Parameter variable: the value of an environment variable; nil or empty if it is not set.
  init(_ variable: (String) -> [UInt8]? = Self.environment) throws(Failure) {
    // The specification of XDG has relative paths ignored.
    let isAbsolute = { (path: [UInt8]) in path.first == UInt8(ascii: "/") }
    let configuration = variable("XDG_CONFIG_HOME").flatMap { isAbsolute($0) ? $0 : nil }
    let home = variable("HOME").flatMap { isAbsolute($0) ? $0 + Array("/.config".utf8) : nil }
    guard let folder = configuration ?? home else {
      throw .failed("profiles need the variable HOME or XDG_CONFIG_HOME, with an absolute path")
    }
    path = folder + Array("/bundlefs/profiles".utf8)
  }

  private static func environment(_ name: String) -> [UInt8]? { getenv(name).map { [UInt8](bytesOf: $0) } }

  /// The path of a profile's file.
  func file(of name: ProfileName) -> [UInt8] { path + [UInt8(ascii: "/")] + name.bytes }

  /// A profile has no more bytes.
  private static let largest = 1 << 20

  /// Reads a profile's file. A symbolic link is followed: users keep their configuration elsewhere.
  /// - Throws: EFBIG; EINVAL for what is no file, such as a FIFO, which would block.
  static func content(of path: [UInt8]) throws(Errno) -> [UInt8] {
    let file = try Descriptor.open(path, [.read, .nonBlocking, .noControllingTerminal])
    let status = try file.attributes()
    if !status.isRegular { throw status.isDirectory ? .isDirectory : .invalidArgument }
    let content = try file.readAll(limit: largest)
    if content.count > largest { throw .fileTooLarge }
    return content
  }

  /// The names of all profiles, sorted.
  func names() throws(Failure) -> [ProfileName] {
    var names: [ProfileName] = []
    do throws(Errno) {
      try Descriptor.open(path, [.read, .directory]).forEachEntry { entry throws(Errno) in
        // Others are not profiles, such as a copy that an editor makes.
        if let name = try? ProfileName([UInt8](bytesOf: entry.name)) { names.append(name) }
      }
    } catch {
      if error == .noSuchFileOrDirectory { return [] }
      throw .failed("\(path.shown): \(error)")
    }
    return names.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
  }

  /// Makes the folder and those above it.
  func make() throws(Failure) {
    let parts = path.split(separator: UInt8(ascii: "/"))
    for count in 1...parts.count {
      let folder = [UInt8(ascii: "/")] + Array(parts[..<count].joined(separator: [UInt8(ascii: "/")]))
      if (try? Descriptor.open(folder, [.pathOnly, .directory])) != nil { continue }
      do throws(Errno) { try Descriptor.makeDirectory(folder, mode: 0o700) } catch {
        if error != .fileExists { throw .failed("\(folder.shown): \(error)") }
      }
    }
  }
}

/// The name of a profile, which is that of its file.
struct ProfileName: Equatable {
  let bytes: [UInt8]
  var shown: String { bytes.shown }

  /// The most bytes, so that the name of a temporary file fits, too.
  private static let most = 200

  init(_ given: [UInt8]) throws(Failure) {
    guard !given.isEmpty, given.count <= Self.most, given.first != UInt8(ascii: "."),
      given.last != UInt8(ascii: "~"), !given.contains(UInt8(ascii: "/")),
      let text = String(validating: given, as: UTF8.self), text.escapingControls == text
    else {
      throw .usage(
        "'\(given.shown)' cannot be the name of a profile: it needs 1 to \(Self.most) bytes without '/' and control "
          + "characters, no '.' at its start and no '~' at its end")
    }
    bytes = given
  }
}
