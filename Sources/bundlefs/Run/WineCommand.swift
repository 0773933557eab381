import Glibc
import Posix

/// What `bundlefs run` must know of a command that may run Wine. The files of Wine's programs are opened by the server of
/// their prefix: if it runs outside of the mount, they do not see the mount, and change the real files. One that a command
/// has started inside stays for some seconds, and the next programs would see the mount by it.
struct WineCommand {
  private let prefix: [UInt8]
  /// Whether the command or the environment names Wine. Otherwise a script may still run it.
  let isCertain: Bool

  private static let programs: Set<String> = [
    "wine", "wine64", "wine-stable", "wine-development", "wine-staging", "proton",
  ]

  init(_ words: [[UInt8]]) {
    let assignment = Array("WINEPREFIX=".utf8)
    let given = words.last { $0.starts(with: assignment) }.map { Array($0.dropFirst(assignment.count)) }
    // Proton sets WINEPREFIX itself.
    let proton = Self.variable("STEAM_COMPAT_DATA_PATH").map { $0 + "/pfx".utf8 }
    let named = given ?? proton ?? Self.variable("WINEPREFIX")
    prefix = named ?? (Self.variable("HOME") ?? []) + "/.wine".utf8
    isCertain = named != nil || words.contains { Self.isWine($0) }
  }

  private static func variable(_ name: String) -> [UInt8]? {
    getenv(name).map { [UInt8](bytesOf: $0) }.flatMap { $0.isEmpty ? nil : $0 }
  }

  private static func isWine(_ word: [UInt8]) -> Bool {
    let name = word.shown.split(separator: "/").last.map { $0.lowercased() } ?? ""
    return programs.contains(name) || name.hasSuffix(".exe")
  }

  /// Refuses a command whose files a server outside of the mount would open; warns if it may be one.
  func check() throws(Failure) {
    guard let server = WineServer(of: prefix) else { return }
    let message =
      "a wineserver (process \(server.process)) of the prefix \(prefix.shown) already runs: it opens the files of all "
      + "Wine programs there, which would not see the mount, and change the real files; end it with "
      + "'WINEPREFIX=\(prefix.shown) wineserver -k'"
    if isCertain { throw .failed(message) }
    Terminal.printError("warning: " + message)
  }

  /// Runs the command, and ends when it and the server that it has started have ended. A signal in the meantime ends the
  /// server.
  func run(_ execute: () -> Never) -> Never {
    do throws(Errno) {
      let child = try SupervisedChild(execute)
      let status = child.waitForEnd()
      while let server = WineServer(of: prefix) {
        if child.nextSignal(milliseconds: 50) != nil { server.end() }
      }
      exit(status)
    } catch {
      Terminal.printError("cannot start a process: \(error)")
      exit(RunCommand.failed)
    }
  }
}
