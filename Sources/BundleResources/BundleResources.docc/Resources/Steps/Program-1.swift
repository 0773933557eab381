import BundleResources
import Foundation
import Glibc

/// `greeter`: greets in the words of a bundle, over directories and archives or over a mount.
@main enum Program {
  static func main() async {
    do {
      try await run(Arguments(CommandLine.arguments.dropFirst()))
    } catch {
      printError(error)
      exit((error as? GreeterError)?.exitStatus ?? 1)
    }
  }

  private static func run(_ arguments: Arguments) async throws {
    let bundle = try open(arguments.source)
    let phrases = try Phrases(bundle: bundle, language: arguments.language)
    let greeter = Greeter(bundle: bundle, phrases: phrases)
    greeter.welcome()
  }

  private static func open(_ source: Arguments.Source) throws -> LayeredBundle {
    switch source {
    case .layers(let main, let substitution): try LayeredBundle(main: main, substitution: substitution)
    case .mount(let mountPoint): try LayeredBundle(mountPoint: mountPoint)
    }
  }
}
