import Glibc
import Posix
import WebServer

/// Opens the page in the user's browser.
enum UIBrowser {
  /// Runs xdg-open(1) where there is a display. If that fails, the user has the printed address.
  static func open(_ address: String) {
    if !hasDisplay { return }
    open(Array(address.utf8))
  }

  /// Opens the folder of an entry of a mount in the file manager.
  static func show(_ path: [[UInt8]], in mountPoint: MountPoint) throws(WebError) -> WebResponse {
    if !hasDisplay { throw WebError(501, "there is no display") }
    let folder = ([mountPoint.path] + path.dropLast()).joinedPath
    open(folder)
    return .json("{}")
  }

  private static func open(_ target: [UInt8]) {
    // It can last as long as the program that it starts.
    try? Posix.Thread.startDetached(name: "xdg-open") {
      ChildProcess.runApart([Array("xdg-open".utf8), target])
    }
  }

  private static var hasDisplay: Bool {
    ["DISPLAY", "WAYLAND_DISPLAY"].contains { (name: String) in
      getenv(name).map { strlen($0) > 0 } ?? false
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
