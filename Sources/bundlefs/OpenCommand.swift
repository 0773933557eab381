import Glibc
import Posix
import Routing

/// `bundlefs open URL…`: hands each URL to the mount that answers it.
///
/// A desktop runs this for schemes that it was told to (x-scheme-handler), so a URL may come from anywhere: it
/// must be one, and nothing that is built in is reached by it.
struct OpenCommand {
  private let urls: [[UInt8]]

  /// Reads what follows `open`.
  init(_ arguments: [[UInt8]]) throws(Failure) {
    guard !arguments.isEmpty else { throw .usage("'open' needs a URL") }
    for argument in arguments {
      let url: RouteURL
      do throws(RoutingError) { url = try RouteURL(argument) } catch {
        throw .usage("'\(argument.shown)': \(error)")
      }
      if url.scheme == "bundlefs" {
        throw .usage("'\(argument.shown)' is for one mount; write it to that mount's control file")
      }
    }
    urls = arguments
  }

  /// Asks the mounts, the newest first, and prints what became of each URL in the one that took it.
  /// - Returns: the exit status: 0, or 1 if no mount took one of them.
  func run() throws(Failure) -> CInt {
    var status: CInt = 0
    var mounts = try Self.mounts(among: MountTableEntry.all(), of: getuid()).map { MountQuery($0) }
    for url in urls {
      if !Self.open(url, &mounts) { status = 1 }
    }
    return status
  }

  private static func open(_ url: [UInt8], _ mounts: inout [MountQuery]) -> Bool {
    var reasons: [String] = []
    for index in mounts.indices {
      switch mounts[index].send(url) {
      case .accepted(let result):
        Terminal.print(result)
        return true
      case .rejected(let reason): reasons.append(reason)
      }
    }
    Terminal.printError("no mount takes \(url.shown) (\(reasons.joined(separator: "; ")))")
    return false
  }

  /// The mounts that are asked, the newest first; of those that lie over each other the topmost. Another user's
  /// are not: he would learn the URL, and answer for it.
  /// - Throws: if there are none, with the reason.
  static func mounts(
    among entries: [MountTableEntry], of user: UInt32
  ) throws(Failure) -> [MountTableEntry] {
    var seen: Set<[UInt8]> = []
    let all = entries.reversed().filter { seen.insert($0.mountPoint).inserted && $0.isBundlefs }
    let mounts = all.filter { $0.user == 0 || $0.user == user }
    if let other = all.first, mounts.isEmpty {
      let owner = other.user.map { "user \($0)" } ?? "another user"
      throw .failed(
        "no bundlefs of yours or root's is mounted; that of \(owner) at \(other.mountPoint.shown) is not asked"
      )
    }
    if mounts.isEmpty { throw .failed("no bundlefs is mounted") }
    return mounts
  }
}
