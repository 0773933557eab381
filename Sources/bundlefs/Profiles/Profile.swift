import Posix
import Routing

/// A stack of layers with mount options, saved by name.
struct Profile {
  /// As `-o` takes them, each with its backslashes.
  let options: [[UInt8]]
  /// What they mean.
  let parsed: MountOptions

  /// The layers above MAIN, top first.
  var layers: [[UInt8]] { parsed.writable.added + parsed.substitutions }

  /// The profile of a mount.
  /// - Parameter status: of the mount.
  init(_ status: JSONValue, _ mounted: MountedLayers) throws(Failure) {
    guard case .array(let given) = status["encodedOptions"] else {
      throw .failed(
        "the daemon of the mount reports its options to its owner and root only; one of an earlier version does not, which "
          + "'bundlefs upgrade' replaces")
    }
    let substitutions = mounted.layers.dropLast().enumerated().map { index, layer in
      let name = index == 0 && mounted.isWritable ? "writable=" : "substitution="
      return Array(name.utf8) + MountOption.escape(layer.path)
    }
    options = substitutions + given.compactMap { $0.string.flatMap { PercentCoding.decoded($0) } }
    parsed = try Self.parsed(options)
  }

  /// Reads a profile's file.
  init(_ name: ProfileName, in folder: ProfileFolder) throws(Failure) {
    let file = folder.file(of: name)
    let text = try Failure.naming("profile \(file.shown)") { () throws(Errno) in
      try ProfileFolder.content(of: file)
    }
    var (reader, options) = (ProfileText(text), [[UInt8]]())
    while let (line, option) = reader.next() {
      do throws(Failure) { try Self.check(option) } catch {
        throw .failed("profile \(file.shown):\(line): \(error.message)")
      }
      options.append(option)
    }
    self.options = options
    parsed = try Self.parsed(options)
  }

  private static func parsed(_ options: [[UInt8]]) throws(Failure) -> MountOptions {
    var parsed = MountOptions()
    for option in options { try parsed.read(option) }
    return parsed
  }

  private static func check(_ option: [UInt8]) throws(Failure) {
    let name = MountOption(option).name
    if option.contains(0) { throw .failed("a NUL byte") }
    if name == "profile" || name == "remount" { throw .failed("'\(name)' cannot be in a profile") }
    let parsed = try parsed([option])
    let files = [parsed.archivePasswordFile, parsed.httpHeadersFile].compactMap { $0 }
    for path in parsed.writable.added + parsed.substitutions + parsed.routes + files
    where path.first != UInt8(ascii: "/") {
      throw .failed("'\(path.shown)' must be an absolute path")
    }
  }

  /// Writes the profile's file, whole or not at all.
  /// - Parameters:
  ///   - origin: where the profile comes from, for the reader of the file.
  ///   - replacing: whether it may replace another one.
  func save(
    as name: ProfileName, in folder: ProfileFolder, from origin: String, replacing: Bool = true
  ) throws(Failure) {
    guard let lines = ProfileText.text(of: options) else {
      throw .failed("the options of the mount have a line end that a profile cannot have")
    }
    try folder.make()
    let path = folder.file(of: name)
    do throws(Errno) {
      let file = try WholeFile(path, mode: 0o600)
      try file.append(
        ProfileText.comment("A profile of bundlefs, saved from \(origin): a mount option in each line."))
      try file.append(lines)
      try file.place(replacing: replacing)
    } catch {
      if error == .fileExists { throw .failed("there is a profile '\(name.shown)' already") }
      throw .failed("profile \(path.shown): \(error)")
    }
  }
}
