import Glibc
import Posix

/// Opens the page in the user's browser.
enum UIBrowser {
  /// Runs xdg-open(1) where there is a display. If that fails, the user has the printed address.
  static func open(_ address: String) {
    let hasDisplay = ["DISPLAY", "WAYLAND_DISPLAY"].contains { (name: String) in
      getenv(name).map { strlen($0) > 0 } ?? false
    }
    if !hasDisplay { return }
    // It can last as long as the browser.
    try? Posix.Thread.startDetached(name: "xdg-open") {
      _ = runQuietly("xdg-open", [], Array(address.utf8))
    }
  }
}

/// A flag that one thread sets and another one waits for.
final class EventFlag: Sendable {
  private let event: EventFD?

  init() { event = try? EventFD() }

  func set() { event?.signal() }

  /// Returns once it is set, or after the timeout.
  func wait(milliseconds: CInt) { event?.wait(or: -1, milliseconds: milliseconds) }
}
