import Glibc
import Posix
import Routing

/// The folder of a user's profiles: `$XDG_CONFIG_HOME/bundlefs/profiles`, or `~/.config/bundlefs/profiles`.
struct ProfileFolder {
  let path: [UInt8]

  init(_ variable: UserFolder.Variable = UserFolder.environment) throws(Failure) {
    guard let folder = UserFolder.base("XDG_CONFIG_HOME", orInHome: ".config", variable) else {
      throw .failed("profiles need the variable HOME or XDG_CONFIG_HOME, with an absolute path")
    }
    path = folder + Array("/bundlefs/profiles".utf8)
  }

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
  func make() throws(Failure) { try UserFolder.make(path) }
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
