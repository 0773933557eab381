import BundleResources
import Foundation
import Posix
import TestSupport
import Testing

/// Notifications from a mount.
@Suite(.serialized) struct ListenerTests {
  /// Runs the body with a mount that has two routes.
  private func withRoutes(_ body: (Mount) throws -> Void) throws {
    let fixture = try ResourceFixture()
    try fixture.make("a.txt", "main")
    let setup = MountSetup(main: fixture.main, point: fixture.point, substitutions: [fixture.substitution])
    try withMount(setup) { mount in
      try mount.writeControl("route Animal l:(animal)Domain/s:Name/f:Weight/i:Life\nroute Any *:Rest\n")
      try body(mount)
    }
  }

  private func listener(_ mount: Mount, _ center: NotificationCenter, since: UInt64? = nil) -> RouteListener {
    RouteListener(mountPoint: mount.point.url, center: center, since: since)
  }

  @Test("posts name, typed values and the URL, in order", .timeLimit(.minutes(1)))
  func typed() throws {
    try withRoutes { mount in
      let center = NotificationCenter()
      let observer = Observer(center)
      let listener = listener(mount, center)
      try mount.writeControl("x://animal/early/1/2\n")
      try listener.start()
      try mount.writeControl(
        "x://animal/platypus/3.1/4\nx://animal/spiny%20anteater/8/-9223372036854775808?q=1#top\n")
      try mount.writeControl(
        "match x://animal/none/1/1\nx://animal/%22%5C%F0%9F%A6%86%0A/0.1/9223372036854775807\nx:a/b\n")
      #expect(eventually(within: 20) { observer.all.count >= 4 })
      let seen = observer.all
      #expect(seen.map(\.name) == ["Animal", "Animal", "Animal", "Any"])
      #expect(seen.map(\.sequence) == [4, 5, 7, 8])
      let values = seen.map(\.values)
      #expect(
        values[0] == [
          "Domain": "String animal", "Name": "String platypus", "Weight": "Double 3.1", "Life": "Int 4",
        ])
      #expect(values[1]["Weight"] == "Double 8.0" && values[1]["Life"] == "Int \(Int.min)")
      #expect(values[1]["Name"] == "String spiny anteater")
      #expect(values[2]["Name"] == "String \"\\🦆\n" && values[2]["Life"] == "Int \(Int.max)")
      #expect(values[2]["Weight"] == "Double 0.1")
      #expect(values[3] == ["Rest": "String a/b"])
      #expect(seen[0].url == "x://animal/platypus/3.1/4" && seen[0].query == nil && seen[0].fragment == nil)
      #expect(seen[1].query == "q=1" && seen[1].fragment == "top")
      #expect(abs(seen[0].time.timeIntervalSinceNow) < 60)
      listener.stop()
    }
  }

  @Test("receives everything that is posted after the start", .timeLimit(.minutes(1)))
  func everything() throws {
    try withRoutes { mount in
      let center = NotificationCenter()
      let observer = Observer(center)
      let listener = listener(mount, center)
      try listener.start()
      #expect(listener.isListening)
      for number in 0..<500 {
        try mount.writeControl(number % 3 == 0 ? "match x:\(number)\n" : "x:\(number)\n")
        if number % 50 == 0 { #expect(eventually(within: 10) { observer.all.count >= number * 2 / 3 }) }
      }
      let expected = (0..<500).filter { $0 % 3 > 0 }.map { "x:\($0)" }
      #expect(eventually(within: 20) { observer.all.count >= expected.count })
      #expect(observer.all.map(\.url) == expected)
      #expect(observer.ends == 0 && observer.missed.isEmpty)
      listener.stop()
      #expect(!listener.isListening)
    }
  }

  @Test(
    "resumes after the last result when stopped and started again", .timeLimit(.minutes(1)))
  func restart() throws {
    try withRoutes { mount in
      let center = NotificationCenter()
      let observer = Observer(center)
      let first = listener(mount, center)
      var expected: [String] = []
      for round in 0..<10 {
        try first.start()
        try first.start()
        try mount.writeControl("x:a\(round)\n")
        expected.append("x:a\(round)")
        #expect(eventually(within: 10) { observer.all.count == expected.count })
        first.stop()
        first.stop()
        try mount.writeControl("x:b\(round)\n")
        expected.append("x:b\(round)")
        usleep(20_000)
        #expect(observer.all.count == expected.count - 1)
      }
      let last = try #require(first.lastSequence)
      let second = listener(mount, center, since: last)
      try second.start()
      #expect(eventually(within: 10) { observer.all.count == expected.count })
      #expect(observer.all.map(\.url) == expected)
      second.stop()
    }
  }

  @Test("posts nothing more after an observer stops the listener", .timeLimit(.minutes(1)))
  func stopInObserver() throws {
    try withRoutes { mount in
      let center = NotificationCenter()
      let listener = listener(mount, center, since: 0)
      try mount.writeControl((0..<50).map { "x:\($0)\n" }.joined())
      let count = Locked(0)
      let token = center.addObserver(forName: Notification.Name("Any"), object: nil, queue: nil) { _ in
        count.withLock { $0 += 1 }
        listener.stop()
      }
      defer { center.removeObserver(token) }
      try listener.start()
      #expect(eventually(within: 10) { !listener.isListening })
      usleep(50_000)
      #expect(count.withLock { $0 } == 1 && listener.lastSequence == 3)
    }
  }

  @Test("reports the results that the mount has dropped", .timeLimit(.minutes(1)))
  func missed() throws {
    try withRoutes { mount in
      try mount.writeControl((3...2000).map { "x:\($0)\n" }.joined())
      let center = NotificationCenter()
      let observer = Observer(center)
      let listener = listener(mount, center, since: 10)
      try listener.start()
      #expect(eventually(within: 20) { observer.all.count == 1024 })
      #expect(observer.missed == [11...976])
      #expect(observer.all.first?.sequence == 977 && observer.all.last?.sequence == 2000)
      listener.stop()
      // A sequence number above the newest is of an earlier mount.
      let future = RouteListener(mountPoint: mount.point.url, center: center, since: 1_000_000)
      try future.start()
      #expect(eventually(within: 20) { observer.all.count == 2048 })
      future.stop()
    }
  }

  @Test("does not prevent unmounting and ends with the mount", .timeLimit(.minutes(1)))
  func unmounted() throws {
    let center = NotificationCenter()
    let observer = Observer(center)
    var listeners: [RouteListener] = []
    try withRoutes { mount in
      for _ in 0..<3 {
        let listener = listener(mount, center)
        try listener.start()
        listeners.append(listener)
      }
      #expect(eventually(within: 10) { Self.threads() == 3 })
    }
    #expect(eventually(within: 15) { observer.ends == 3 })
    #expect(listeners.allSatisfy { !$0.isListening })
    #expect(observer.errors.isEmpty)
    #expect(eventually(within: 10) { Self.threads() == 0 })
  }

  /// The worker unmounts when its holder is killed. With `survive=off` there is none, and the mount is left.
  @Test(
    "ends when the daemon exits, with an error when it leaves a dead mount", .timeLimit(.minutes(1)),
    arguments: [
      (SIGTERM, "survive=on"), (SIGTERM, "survive=off"), (SIGKILL, "survive=on"), (SIGKILL, "survive=off"),
    ])
  func daemon(signal: CInt, option: String) throws {
    let fixture = try ResourceFixture()
    var setup = MountSetup(main: fixture.main, point: fixture.point)
    setup.options = [ByteString(option)]
    let mount = try Mount(setup)
    defer { mount.abandon() }
    let center = NotificationCenter()
    let observer = Observer(center)
    let listener = listener(mount, center)
    try listener.start()
    mount.process.signal(signal)
    #expect(eventually(within: 20) { observer.ends == 1 })
    let isDead = signal == SIGKILL && option == "survive=off"
    #expect(!listener.isListening && observer.errors == (isDead ? [.ENOTCONN] : []))
    _ = try mount.process.wait(timeout: 20)
  }

  @Test("stops on deinit and leaves no thread", .timeLimit(.minutes(1)))
  func deinitialized() throws {
    try withRoutes { mount in
      let center = NotificationCenter()
      let observer = Observer(center)
      for _ in 0..<20 { try listener(mount, center).start() }
      #expect(eventually(within: 10) { Self.threads() == 0 })
      try mount.writeControl("x:1\n")
      usleep(50_000)
      #expect(observer.all.isEmpty && observer.ends == 0)
    }
  }

  @Test("waits without polling", .timeLimit(.minutes(1)))
  func idle() throws {
    try withRoutes { mount in
      let center = NotificationCenter()
      let listener = listener(mount, center)
      try listener.start()
      usleep(100_000)
      let before = try Self.contextSwitches()
      usleep(500_000)
      #expect(try Self.contextSwitches() - before < 5)
      listener.stop()
    }
  }

  @Test("fails to start where nothing is mounted")
  func notMounted() throws {
    let fixture = try ResourceFixture()
    let (main, nothing) = (fixture.main.url, (fixture.folder / "nothing").url)
    let host = try #require(URL(string: "http://host/"))
    let cases: [(URL, MountError)] = [
      (main, .notMounted(path: main.path(percentEncoded: false))),
      (nothing, .noDirectory(path: nothing.path(percentEncoded: false))), (host, .notAFileURL(host)),
    ]
    for (url, expected) in cases {
      let listener = RouteListener(mountPoint: url)
      #expect(throws: expected) { try listener.start() }
      #expect(!listener.isListening, "\(url)")
      #expect(expected.localizedDescription.contains(url.scheme == "file" ? url.path : "http"))
      listener.stop()
    }
  }

  /// The IDs of this process's listener threads.
  private static func listenerThreads() -> [ByteString] {
    let tasks = ByteString("/proc/self/task")
    let names = (try? tasks.names()) ?? []
    return names.filter { (try? (tasks / $0 / "comm").readText()) == "routes\n" }
  }

  private static func threads() -> Int { listenerThreads().count }

  /// The listener threads' total number of voluntary context switches.
  private static func contextSwitches() throws -> Int {
    try listenerThreads().reduce(0) { sum, thread in
      let status = try ("/proc/self/task" / thread / "status").readText()
      let line = status.split(separator: "\n").first { $0.hasPrefix("voluntary_ctxt_switches:") }
      let number = line.flatMap { Int($0.drop { !$0.isNumber }) }
      return sum + (try #require(number))
    }
  }
}

/// Records what a notification center posts, in order.
private final class Observer: Sendable {
  struct Posted: Sendable {
    let name: String
    /// The values, each prefixed with its type.
    let values: [String: String]
    let sequence: UInt64
    let url: String
    let time: Date
    let query: String?
    let fragment: String?
  }

  private struct State {
    var posted: [Posted] = []
    var missed: [ClosedRange<UInt64>] = []
    var ends = 0
    var errors: [POSIXErrorCode] = []
  }

  private let state: Locked<State>

  init(_ center: NotificationCenter) {
    let state = Locked(State())
    self.state = state
    // The center retains the observer until the test ends.
    _ = center.addObserver(forName: nil, object: nil, queue: nil) { posted in
      state.withLock { Self.record(posted, in: &$0) }
    }
  }

  var all: [Posted] { state.withLock { $0.posted } }
  var missed: [ClosedRange<UInt64>] { state.withLock { $0.missed } }
  var ends: Int { state.withLock { $0.ends } }
  var errors: [POSIXErrorCode] { state.withLock { $0.errors } }

  private static func record(_ posted: Notification, in state: inout State) {
    switch posted.name {
    case RouteListener.didEnd:
      state.ends += 1
      if let error = RouteListener.error(of: posted) {
        state.errors.append(error.code)
      }
    case RouteListener.didMissResults:
      if let missed = RouteListener.missedResults(of: posted) { state.missed.append(missed) }
    default:
      guard let routed = posted.object as? RoutedURL else { return }
      var values: [String: String] = [:]
      for (key, value) in posted.userInfo ?? [:] { values["\(key)"] = "\(type(of: value)) \(value)" }
      state.posted.append(
        Posted(
          name: posted.name.rawValue, values: values, sequence: routed.sequence, url: routed.text,
          time: routed.time, query: routed.query, fragment: routed.fragment))
    }
  }
}
