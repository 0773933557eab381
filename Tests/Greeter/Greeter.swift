import BundleResources
import Foundation

/// Greets in the words of a bundle and its substitutions.
struct Greeter {
  let bundle: LayeredBundle
  let phrases: Phrases

  /// Greets the user with the application's name, which is in Info.plist.
  func welcome() {
    let name = bundle.object(forInfoDictionaryKey: "CFBundleName") as? String
    printLine(phrases("welcome", name ?? "Greeter"))
  }

  /// Describes the logo.
  func show(_ logo: Logo) {
    printLine(phrases("logo", logo.mimeType, logo.data.count))
  }

  /// Greets as a route's notification asks.
  func greet(_ notification: RoutedNotification) throws(GreeterError) {
    let greeting = try Greeting(notification)
    for _ in 0..<greeting.times { printLine(phrases("hello", greeting.name)) }
    printLine(phrases("greetings", greeting.times, greeting.name))
  }

  /// Greets by URLs, without a mount.
  /// - Throws: ``GreeterError/noRoute(_:)``; `RouteError` for a malformed URL.
  func greet(_ urls: [URL]) throws {
    let responder = URLResponder()
    try responder.register(Greeting.route, pattern: Greeting.pattern)
    for url in urls {
      guard let notification = try responder.process(url) else { throw GreeterError.noRoute(url) }
      try greet(notification)
    }
  }
}
