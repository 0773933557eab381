import BundleResources
import Foundation
import Posix
import TestSupport

/// Where a bundle's layers are: each test of ``LayeredBundle`` has the same results for all.
enum BundleForm: String, CaseIterable, Sendable {
  case folders, archives, mount
}

extension ResourceFixture {
  /// Passes the fixture's bundle to the body.
  func withBundle(
    _ form: BundleForm, _ options: LookupOptions = LookupOptions(languages: ["fr", "en"]),
    _ body: (LayeredBundle) throws -> Void
  ) throws {
    switch form {
    case .folders:
      try body(try LayeredBundle(main: main.url, substitution: [substitution.url], options: options))
    case .archives:
      let layers = try [main, substitution].map { try archive($0) }
      try body(try LayeredBundle(main: layers[0], substitution: [layers[1]], options: options))
    case .mount:
      var setup = MountSetup(main: main, point: point, substitutions: [substitution])
      setup.options = Self.mountOptions(options)
      try withMount(setup) { _ in try body(try LayeredBundle(mountPoint: point.url)) }
    }
  }

  private static func mountOptions(_ options: LookupOptions) -> [ByteString] {
    var words: [ByteString] = []
    if let languages = options.languages {
      words.append(ByteString("languages=" + languages.joined(separator: ":")))
    }
    if let scale = options.scale { words.append(ByteString("scale=\(scale)")) }
    if let idiom = options.idiom { words.append(idiom == .pad ? "idiom=pad" : "idiom=phone") }
    return words
  }

  /// Writes a layer's files into an archive beside it.
  private func archive(_ layer: ByteString) throws -> URL {
    var builder = ZipBuilder()
    let root = URL(fileURLWithPath: layer.text, isDirectory: true)
    for name in try FileManager.default.subpathsOfDirectory(atPath: layer.text).sorted() {
      let file = root.appending(path: name)
      if file.hasDirectoryPath || (try? file.resourceValues(forKeys: [.isDirectoryKey]))?.isDirectory == true
      {
        continue
      }
      builder.add(ZipBuilder.Entry(ByteString(name), [UInt8](try Data(contentsOf: file)), .deflated))
    }
    let path = ByteString(layer.text + ".zip")
    try path.write(builder.bytes)
    return URL(fileURLWithPath: path.text)
  }

  /// A resource's URL as `LAYER PATH`; on a mount `PATH` alone, in an archive `archive PATH`.
  func summary(_ url: URL?) -> String? {
    guard let url else { return nil }
    guard url.isFileURL else { return "archive " + url.path(percentEncoded: false).dropFirst() }
    for (name, folder) in [("main ", main), ("substitution ", substitution), ("", point)] {
      let prefix = folder.text + "/"
      if url.path.hasPrefix(prefix) { return name + url.path.dropFirst(prefix.count) }
    }
    return url.path
  }
}
