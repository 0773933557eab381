import BundleResources

/// A person to greet, and how often: what the route makes of `greeter://greet/Ada/2`.
struct Greeting {
  let name: String
  let times: Int

  /// The name of the route, and of the notifications.
  static let route = "Greeting"
  /// `greet`, then a text, then an integer.
  static let pattern = "l:(greet)Verb/s:Name/i:Times"
  /// A mistyped number must not fill the screen.
  private static let limits = 0...100

  /// - Throws: ``GreeterError/tooOften(_:limits:)``.
  init(_ notification: RoutedNotification) throws(GreeterError) {
    name = notification.text("Name") ?? ""
    times = notification.integer("Times") ?? 1
    guard Self.limits.contains(times) else { throw .tooOften(times, limits: Self.limits) }
  }
}
