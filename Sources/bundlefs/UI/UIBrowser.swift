import Glibc
import Posix
import WebServer

/// Opens the page in the user's browser.
enum UIBrowser {
  /// The umask that the command was started with. Edits of layers set that of the process to 0.
  private static let mask = {
    let mask = umask(0)
    umask(mask)
    return mask
  }()

  /// To be called before anything changes the umask.
  static func noteUmask() { _ = mask }

  /// Whether programs can be started for the user: there is a display, and they would not have the rights of root.
  static var isUsable: Bool { refusal == nil }

  private static var refusal: WebError? {
    if geteuid() == 0 { return WebError(501, "bundlefs ui runs as root, and starts no programs as such") }
    return hasDisplay ? nil : WebError(501, "there is no display")
  }

  /// Runs xdg-open(1). If that fails, the user has the printed address.
  /// - Returns: the file by which the browser finds the address, to be removed at the end.
  static func open(_ address: String) -> UIAddressFile? {
    guard isUsable, let file = UIAddressFile.leading(to: address) else { return nil }
    open(file.path)
    return file
  }

  /// Opens the folder of an entry of a mount in the file manager.
  static func show(_ path: [[UInt8]], in mountPoint: MountPoint) throws(WebError) -> WebResponse {
    if let refusal { throw refusal }
    let folder = path.dropLast()
    try check(folder, in: mountPoint)
    open(([mountPoint.path] + folder).joinedPath)
    return .json("{}")
  }

  /// Whatever is no folder, and what is behind a symbolic link, could be a program or a document for one. xdg-open takes
  /// only a path, so that another program can still put something else there.
  static func check(_ path: ArraySlice<[UInt8]>, in mountPoint: MountPoint) throws(WebError) {
    do throws(Errno) {
      var folder = try mountPoint.open([.pathOnly, .directory])
      for name in path { folder = try folder.open(name, [.pathOnly, .directory, .noFollow]) }
    } catch {
      throw WebError(409, "\(shown(Array(path))): this folder cannot be opened: \(error)")
    }
  }

  private static func open(_ target: [UInt8]) {
    // It can last as long as the program that it starts.
    try? Posix.Thread.startDetached(name: "xdg-open") {
      ChildProcess.runApart([Array("xdg-open".utf8), target], umask: mask)
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
