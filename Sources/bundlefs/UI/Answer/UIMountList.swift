import Posix
import Routing

/// The mounts that the page shows.
enum UIMountList {
  /// Within this time a mount must answer to count as alive.
  private static let milliseconds: CInt = 2000

  static func json(_ mounts: [UIMount]) -> String {
    var json = JSONWriter()
    json.array(zip(mounts, statuses(mounts))) { json, found in
      let (mount, status) = found
      json.object { json in
        json.member("id", "\(mount.id)")
        json.member("mountPoint", String(escaping: mount.mountPoint.path))
        json.member("main", status?.mounted.layers.last?.shown)
        json.member("writable", status?.mounted.isWritable ?? false)
        json.member("control", status?.hasControl ?? false)
        json.member("alive", status != nil)
        json.member("opensFolders", UIBrowser.isUsable)
      }
    }
    return json.text
  }

  /// Asks all mounts at once, so that one that hangs does not hide the others.
  private static func statuses(_ mounts: [UIMount]) -> [UIStatus?] {
    let answers = UIAnswerBox(mounts.count)
    for (index, mount) in mounts.enumerated() {
      let start: @Sendable () -> Void = { answers.set(index, try? mount.status()) }
      if (try? Posix.Thread.startDetached(name: "ui-status", start)) == nil { answers.set(index, nil) }
    }
    return answers.wait(milliseconds: milliseconds)
  }
}

/// The answers of threads, some of which may never come.
private final class UIAnswerBox: Sendable {
  private struct State {
    var missing: Int
    var statuses: [UIStatus?]
  }

  private let state: Locked<State>
  private let change = EventFlag()

  init(_ count: Int) { state = Locked(State(missing: count, statuses: Array(repeating: nil, count: count))) }

  func set(_ index: Int, _ status: UIStatus?) {
    state.withLock { state in
      state.statuses[index] = status
      state.missing -= 1
    }
    change.set()
  }

  /// Waits until all have come, or for the timeout.
  func wait(milliseconds: CInt) -> [UIStatus?] {
    let end = TimeSpec.monotonic.advanced(byMilliseconds: milliseconds)
    while state.withLock({ $0.missing }) > 0 {
      let rest = end.milliseconds(since: .monotonic)
      if rest <= 0 { break }
      change.wait(milliseconds: rest)
    }
    return state.withLock { $0.statuses }
  }
}
