import BundleResources
import Foundation

/// Compares the library's look-ups with those of Foundation's Bundle, in one process and in turn.
///
///     librarybench FOLDER ROUNDS     makes a bundle and two substitutions in FOLDER; prints nanoseconds a look-up
@main enum LibraryBench {
  static func main() throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 3, let rounds = Int(arguments[2]), rounds > 0 else {
      throw Failure("usage: librarybench FOLDER ROUNDS")
    }
    let layers = try BenchLayers(URL(fileURLWithPath: arguments[1], isDirectory: true))
    guard let foundation = Bundle(path: layers.main.path) else { throw Failure("Foundation opens no bundle") }
    let options = LookupOptions(languages: ["en"])
    let one = try LayeredBundle(main: layers.main, options: options)
    let three = try LayeredBundle(
      main: layers.main, substitution: [layers.upper, layers.middle], options: options)
    var uncached = options
    uncached.cachesLookups = false
    let plain = try LayeredBundle(
      main: layers.main, substitution: [layers.upper, layers.middle], options: uncached)
    var table = BenchTable()
    for round in 0...rounds {
      // The first round is a warm-up, in which the layers begin to be watched.
      table.isWarm = round > 0
      try table.measure(foundation, one, three, plain)
    }
    table.print()
  }
}

struct Failure: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}
