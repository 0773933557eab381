import Foundation

/// A bundle, and two substitutions for some of its strings and files.
struct BenchLayers {
  let main: URL
  let middle: URL
  let upper: URL

  static let count = 500

  init(_ folder: URL) throws {
    main = folder.appending(path: "Main.app", directoryHint: .isDirectory)
    middle = folder.appending(path: "Middle", directoryHint: .isDirectory)
    upper = folder.appending(path: "Upper", directoryHint: .isDirectory)
    try Self.make(main, every: 1, "main")
    try Self.make(middle, every: 10, "middle")
    try Self.make(upper, every: 50, "upper")
    try Data("{ CFBundleDevelopmentRegion = en; }".utf8).write(to: main.appending(path: "Info.plist"))
  }

  private static func make(_ layer: URL, every step: Int, _ text: String) throws {
    let localized = layer.appending(path: "en.lproj", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: localized, withIntermediateDirectories: true)
    var table = ""
    for number in stride(from: 0, to: count, by: step) {
      table += "\"key \(number)\" = \"\(text) \(number)\";\n"
      try Data(text.utf8).write(to: layer.appending(path: "file\(number).txt"))
    }
    try Data(table.utf8).write(to: localized.appending(path: "Localizable.strings"))
  }
}
