import Glibc
import Posix
import Routing

/// Why a path leads to no mount.
struct NoMount: Error {
  let path: [UInt8]
  let reason: String

  var failure: Failure { .failed("\(path.shown): \(reason)") }
}

/// A bundlefs mount that a command names by a path in it, and what it answers.
struct AskedMount {
  let mount: VisibleMount
  let inspection: MountInspection

  /// How long finding the mounts may take.
  private static let searchMilliseconds: CInt = 600

  /// Finds the mounts and asks them, all at the same time and within two seconds.
  /// - Parameter paths: of mount points, or of anything within the mounts.
  /// - Returns: for each path its mount, or why there is none.
  static func all(
    at paths: [[UInt8]], _ form: StatusProtocol.Form = .json
  ) -> [Result<AskedMount, NoMount>] {
    let start = TimeSpec.monotonic
    let mounts = MountTableEntry.all()
    // The directories above a mount may hang, too.
    let searches = paths.map { path in { (_: ([UInt8]) -> Void) in reply(path, mounts) } }
    let found = zip(
      paths, ForkedCall.runAll(until: start.advanced(byMilliseconds: searchMilliseconds), searches)
    )
    .map { path, outcome in mount(path, outcome, mounts) }
    var inspections = MountInspection.all(
      of: found.compactMap { try? $0.get() }, form,
      until: start.advanced(byMilliseconds: MountInspection.timeoutMilliseconds))[...]
    return found.map { found in
      found.map { AskedMount(mount: $0, inspection: inspections.removeFirst()) }
    }
  }

  /// The child's reply: the resolved path, which begins with a slash, or an error number.
  private static func reply(_ path: [UInt8], _ mounts: [MountTableEntry]) -> [UInt8] {
    do throws(Errno) { return try MountSearch.resolve(path, in: mounts) } catch {
      return Array("\(error.rawValue)".utf8)
    }
  }

  private static func mount(
    _ path: [UInt8], _ outcome: Result<ForkedCall, Errno>, _ mounts: [MountTableEntry]
  ) -> Result<VisibleMount, NoMount> {
    let reason: String
    switch outcome {
    case .success(.returned(let reply)) where reply.first == UInt8(ascii: "/"):
      if let entry = MountSearch.mount(containing: reply, in: mounts) {
        return .success(VisibleMount(entry: entry, owner: nil))
      }
      return .failure(NoMount(path: reply, reason: "no bundlefs is mounted there"))
    case .success(.returned(let reply)): reason = "\(Errno(rawValue: CInt(reply.shown) ?? EIO))"
    case .success(.timedOut): reason = "the file system there does not answer"
    case .success(.failed): reason = "\(Errno.ioError)"
    case .failure(let error): reason = "\(error)"
    }
    return .failure(NoMount(path: path, reason: reason))
  }
}
