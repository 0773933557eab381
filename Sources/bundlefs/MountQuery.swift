import Posix
import Routing

/// A mount that is asked for URLs, by a child process: a mount that hangs holds up whoever touches it.
struct MountQuery {
  /// How long a mount has for an answer, in milliseconds.
  private static let patience: CInt = 2000

  private let entry: MountTableEntry
  private var hangs = false

  init(_ entry: MountTableEntry) { self.entry = entry }

  /// What became of a URL.
  enum Outcome {
    /// The mount took it, and this is the result.
    case taken(String)
    case refused(String)
  }

  /// Asks for a URL. One that has not answered once is not asked again.
  mutating func ask(_ url: [UInt8]) -> Outcome {
    let place = entry.mountPoint.shown
    if hangs { return .refused("\(place): it hangs") }
    do throws(Errno) {
      switch try ForkedCall.run(timeoutMilliseconds: Self.patience, { Self.answer(entry, url) }) {
      case .returned(let text) where text.first == Self.taken: return .taken(Array(text.dropFirst()).shown)
      case .returned(let text): return .refused(Array(text.dropFirst()).shown)
      case .failed: return .refused("\(place): asking it failed")
      case .timedOut:
        hangs = true
        return .refused("\(place): it has not answered for \(Self.patience / 1000) s")
      }
    } catch {
      return .refused("\(place): \(error)")
    }
  }

  private static let taken = UInt8(ascii: "+")
  private static let refused = UInt8(ascii: "-")

  /// The child's part: a byte for the verdict, and the result or the reason.
  private static func answer(_ entry: MountTableEntry, _ url: [UInt8]) -> [UInt8] {
    do throws(Failure) {
      return [taken] + (try result(entry, url).bytes)
    } catch {
      return [refused] + Array(error.message.utf8)
    }
  }

  private static func result(_ entry: MountTableEntry, _ url: [UInt8]) throws(Failure) -> ResultLine {
    let control = try MountedControl(of: MountPoint(mounted: entry.mountPoint))
    let fate: ControlFileWriter.Outcome
    do throws(Errno) {
      var lines = try ControlFileWriter(to: control, on: entry.device)
      fate = try lines.write(url, of: url)
    } catch {
      throw .failed("\(control.path.shown): \(error)")
    }
    if let result = fate.result, fate.error == nil { return result }
    throw .failed("\(entry.mountPoint.shown): \(fate.error?.description ?? "its result is gone already")")
  }
}
