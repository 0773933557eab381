import BundleResources
import Foundation
import Posix
import TestSupport
import Testing

/// Routes without a mount, and those of a mount, registered and received from Swift.
@Suite(.serialized) struct RoutesTests {
  private static let animal =
    "l:(animal)CCFAnimalDomain/s:CCFAnimal/f:CCFAverageWeight/i:CCFAverageLifeExpectancy"

  private func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

  @Test("the URLs of the original's sample page")
  func responder() throws {
    let center = NotificationCenter()
    let responder = URLResponder(center: center)
    try responder.register("CCFAnimalNotification", pattern: Self.animal)
    try responder.register("Color", pattern: "l:(color)CCFColorDomain/s:CCFEnglishWord/s:CCFFrenchWord")
    let seen = Locked<[String]>([])
    let observer = center.addObserver(
      forName: Notification.Name("CCFAnimalNotification"), object: responder, queue: nil
    ) { posted in
      let weight = posted.userInfo?["CCFAverageWeight"] as? Double
      let life = posted.userInfo?["CCFAverageLifeExpectancy"] as? Int
      seen.withLock {
        $0.append("\(posted.userInfo?["CCFAnimal"] as? String ?? "") \(weight ?? 0) \(life ?? 0)")
      }
    }
    defer { center.removeObserver(observer) }
    let platypus = try responder.process(url("ccfurlresponder://animal/platypus/3.1/4"))
    #expect(platypus?.number("CCFAverageWeight") == 3.1 && platypus?.integer("CCFAverageLifeExpectancy") == 4)
    #expect(platypus?.text("CCFAnimalDomain") == "animal" && platypus?["nothing"] == nil)
    try responder.process(url("ccfurlresponder://animal/spiny%20anteater/8/50"))
    #expect(try responder.process(url("ccfurlresponder://color/red/rouge"))?.name == "Color")
    #expect(try responder.process(url("ccfurlresponder://plant/moss/1/1")) == nil)
    #expect(seen.withLock { $0 } == ["platypus 3.1 4", "spiny anteater 8.0 50"])
    #expect(try responder.notification(for: url("x://animal/dog/1/2"))?.sequence == nil)
    #expect(seen.withLock { $0.count } == 2)
  }

  @Test("the first route that matches wins; conflicts and malformed patterns are errors")
  func order() throws {
    let responder = URLResponder(center: NotificationCenter())
    try responder.register("Number", pattern: "i:N")
    try responder.register("Text", pattern: "s:T")
    #expect(try responder.notification(for: url("x:12"))?.name == "Number")
    #expect(try responder.notification(for: url("x:abc12"))?.name == "Text")
    let error = #expect(throws: RouteError.self) { try responder.register("Late", pattern: "i:Other") }
    #expect(
      error?.code == .EEXIST && error?.description.contains("Number") == true, "\(error?.description ?? "")")
    try responder.register("First", pattern: "l:(7)Seven", before: "Number")
    #expect(try responder.notification(for: url("x:7"))?.name == "First")
    #expect(throws: RouteError.self) { try responder.register("Bad", pattern: "q:Key") }
    #expect(throws: RouteError.self) { try responder.register("Bad", pattern: "s:A", before: "Missing") }
    #expect(responder.routes.map(\.name) == ["First", "Number", "Text"])
    #expect(responder.routes.map(\.pattern) == ["l:(7)Seven", "i:N", "s:T"])
    #expect(responder.unregister("Text") == 1)
    #expect(try responder.notification(for: url("x:abc")) == nil)
    responder.reset()
    #expect(responder.routes.isEmpty)
    #expect(try responder.process(url("x:7")) == nil)
  }

  private func withMountPoint(_ body: (Mount) async throws -> Void) async throws {
    let fixture = try ResourceFixture()
    try fixture.make("a.txt", "main")
    let mount = try Mount(
      MountSetup(main: fixture.main, point: fixture.point, substitutions: [fixture.substitution]))
    try await body(mount)
    if try MountTable.bundlefs(at: mount.point) != nil { try mount.unmount() }
  }

  /// The code of what the mount refuses; nil if it refuses nothing.
  private func refusal(_ call: () throws(MountError) -> Any?) throws -> POSIXErrorCode? {
    do throws(MountError) { _ = try call() } catch {
      guard case .refused(let reason) = error else { throw error }
      return reason.code
    }
    return nil
  }

  @Test("registers, posts and receives by a mount", .timeLimit(.minutes(1)))
  func mounted() async throws {
    try await withMountPoint { mount in
      let (routes, cat, dog) = (MountRoutes(mountPoint: mount.point.url), try url("x:cat"), try url("x:dog"))
      try routes.register("Animal", pattern: Self.animal)
      try routes.register("Any", pattern: "*:Rest")
      try routes.register("Dog", pattern: "l:(dog)Dog", before: "Any")
      let sequence = try RouteListener.notifications(mountPoint: mount.point.url, named: ["Animal", "Dog"])
      let posted = try routes.post(url("x://animal/platypus/3.1/4"))
      #expect(
        posted?.name == "Animal" && posted?.number("CCFAverageWeight") == 3.1 && posted?.sequence != nil)
      #expect(try routes.notification(for: dog)?.name == "Dog")
      try routes.post(cat)
      try routes.post(dog)
      var received: [RoutedNotification] = []
      for try await notification in sequence {
        received.append(notification)
        if received.count == 2 { break }
      }
      #expect(received.map(\.name) == ["Animal", "Dog"])
      #expect(received.first == posted)
      try routes.unregister("Any")
      #expect(try refusal { () throws(MountError) in try routes.post(cat) } == .ENOENT)
      #expect(
        try refusal { () throws(MountError) in try routes.register("Bad", pattern: "q:Key") } == .EINVAL)
      try routes.reset()
      #expect(try refusal { () throws(MountError) in try routes.post(dog) } == .ENOENT)
    }
  }

  @Test("no string that a program passes becomes another command", .timeLimit(.minutes(1)))
  func commands() async throws {
    try await withMountPoint { mount in
      let routes = MountRoutes(mountPoint: mount.point.url)
      try routes.register("A", pattern: "s:A")
      func expectRefused(_ what: String, _ call: () throws(MountError) -> Any?) throws {
        #expect(try refusal(call) == .EINVAL, "\(what)")
      }
      let posted = [
        "bundlefs:///layers?substitution=/etc", "BundleFS:reset", "reset", "unroute%20A", "match", "%23",
        "route",
      ]
      for text in posted {
        let url = try url(text)
        try expectRefused(text) { () throws(MountError) in try routes.post(url) }
        try expectRefused(text) { () throws(MountError) in try routes.notification(for: url) }
      }
      for pattern in ["l:(b)D/s:N before A", "s:N\nreset", "s:N\0", "", "s:N before"] {
        try expectRefused(pattern) { () throws(MountError) in try routes.register("B", pattern: pattern) }
      }
      for name in ["B s:N", "", "B\nreset", "B\tC"] {
        try expectRefused(name) { () throws(MountError) in try routes.register(name, pattern: "s:B") }
        try expectRefused(name) { () throws(MountError) in try routes.unregister(name) }
        try expectRefused(name) { () throws(MountError) in
          try routes.register("B", pattern: "s:B", before: name)
        }
      }
      #expect(try routes.notification(for: url("x:1"))?.name == "A")
      #expect(try (mount.point / ".routes").readText().split(separator: "\n").contains("route A s:A"))
    }
  }

  @Test("the sequence ends with its task, and with the mount", .timeLimit(.minutes(1)))
  func ends() async throws {
    try await withMountPoint { mount in
      let (first, second) = (
        try RouteListener.notifications(mountPoint: mount.point.url),
        try RouteListener.notifications(mountPoint: mount.point.url)
      )
      let cancelled = Task {
        var count = 0
        for try await _ in first { count += 1 }
        return count
      }
      let ended = Task {
        var count = 0
        for try await _ in second { count += 1 }
        return count
      }
      cancelled.cancel()
      #expect(try await cancelled.value == 0)
      try mount.unmount()
      #expect(try await ended.value == 0)
      #expect(throws: MountError.notMounted(path: mount.point.url.path(percentEncoded: false))) {
        try RouteListener.notifications(mountPoint: mount.point.url)
      }
    }
  }

  @Test("the sequence throws when the daemon dies", .timeLimit(.minutes(1)))
  func death() async throws {
    let fixture = try ResourceFixture()
    var setup = MountSetup(main: fixture.main, point: fixture.point)
    setup.options = ["survive=off"]
    let mount = try Mount(setup)
    defer { mount.abandon() }
    let posted = try RouteListener.notifications(mountPoint: mount.point.url)
    mount.process.signal(SIGKILL)
    let path = mount.point.url.path(percentEncoded: false)
    await #expect(throws: MountError.disconnected(path: path)) { for try await _ in posted {} }
    _ = try mount.process.wait(timeout: 20)
  }

  @Test("each cause has its own error, with a sentence", .timeLimit(.minutes(1)))
  func errors() async throws {
    let fixture = try ResourceFixture()
    let routes = MountRoutes(mountPoint: fixture.main.url)
    let error = #expect(throws: MountError.self) { try routes.post(try url("x:1")) }
    #expect(error?.localizedDescription.contains("no bundlefs is mounted there") == true)
    let nothing = MountRoutes(mountPoint: (fixture.folder / "nothing").url)
    let missing = #expect(throws: MountError.self) { try nothing.reset() }
    #expect(missing?.localizedDescription.contains("no such directory") == true)
    #expect(
      try refusal { () throws(MountError) in try routes.register("A\nreset", pattern: "s:A") } == .EINVAL)
  }
}
