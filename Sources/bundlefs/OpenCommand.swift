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
    let mounts = Self.mounts
    if mounts.isEmpty { throw .failed("no bundlefs is mounted") }
    for url in urls {
      if !Self.open(url, mounts) { status = 1 }
    }
    return status
  }

  private static func open(_ url: [UInt8], _ mounts: [MountPoint]) -> Bool {
    var reasons: [String] = []
    for mount in mounts {
      do throws(Failure) {
        let (result, reason) = try ask(mount, url)
        if let result {
          Terminal.say(result.bytes.shown)
          return true
        }
        reasons.append("\(mount.path.shown): \(reason)")
      } catch {
        reasons.append(error.message)
      }
    }
    Terminal.complain("no mount takes \(url.shown) (\(reasons.joined(separator: "; ")))")
    return false
  }

  private static func ask(
    _ mount: MountPoint, _ url: [UInt8]
  ) throws(Failure) -> (result: ResultLine?, reason: String) {
    let control = try MountedControl(of: mount)
    do throws(Errno) {
      var lines = try WrittenLines(to: control)
      let fate = try lines.write(url, of: url)
      if let error = fate.error { return (nil, "\(error)") }
      return (fate.result, "its result is gone already")
    } catch {
      throw .failed("\(control.path.shown): \(error)")
    }
  }

  /// The mounts that can be asked, the newest first; of those that lie over each other the topmost.
  private static var mounts: [MountPoint] {
    var seen: Set<[UInt8]> = []
    return MountTableEntry.all().reversed().compactMap { entry in
      guard seen.insert(entry.mountPoint).inserted, entry.isBundlefs else { return nil }
      return try? MountPoint(mounted: entry.mountPoint)
    }
  }
}
