import Glibc
import Posix
import Routing

/// `bundlefs open URL…`: sends each URL to the mount that accepts it.
///
/// Desktops run this for registered schemes (`x-scheme-handler`), so URLs are untrusted: anything that is not a URL
/// and all `bundlefs:` commands are rejected.
struct OpenCommand {
  private let urls: [[UInt8]]

  init(_ arguments: [[UInt8]]) throws(Failure) {
    guard !arguments.isEmpty else { throw .usage("'open' needs a URL") }
    for argument in arguments {
      let url: RouteURL
      do throws(RoutingError) { url = try RouteURL(argument) } catch {
        throw .usage("'\(argument.shown)': \(error)")
      }
      if url.scheme == "bundlefs" {
        throw .usage("'\(argument.shown)' applies to a single mount; write it to that mount's control file")
      }
    }
    urls = arguments
  }

  /// - Returns: the exit status: 1 if no mount accepted one of the URLs.
  func run() throws(Failure) -> CInt {
    var status: CInt = 0
    var mounts = try Self.mounts(among: MountTableEntry.all(), of: getuid()).map { MountQuery($0) }
    for url in urls where !Self.open(url, &mounts) { status = 1 }
    return status
  }

  private static func open(_ url: [UInt8], _ mounts: inout [MountQuery]) -> Bool {
    var reasons: [String] = []
    for index in mounts.indices {
      switch mounts[index].send(url) {
      case .accepted(let result):
        if !result.isEmpty { Terminal.print(result) }
        return true
      case .rejected(let reason): reasons.append(reason)
      }
    }
    Terminal.printError("no mount accepts \(url.shown) (\(reasons.joined(separator: "; ")))")
    return false
  }

  /// The topmost mounts of the user and of root, the newest first. Other users' mounts are left out: their daemons
  /// would see the URL and could answer it.
  static func mounts(among entries: [MountTableEntry], of user: UInt32) throws(Failure) -> [MountTableEntry] {
    var seen: Set<[UInt8]> = []
    let all = entries.reversed().filter { seen.insert($0.mountPoint).inserted && $0.isBundlefs }
    let mounts = all.filter { $0.user == 0 || $0.user == user }
    if let other = all.first, mounts.isEmpty {
      let owner = other.user.map { "user \($0)" } ?? "another user"
      throw .failed(
        "neither you nor root has mounted a bundlefs; that of \(owner) at \(other.mountPoint.shown) is not used"
      )
    }
    if mounts.isEmpty { throw .failed("no bundlefs is mounted") }
    return mounts
  }
}
