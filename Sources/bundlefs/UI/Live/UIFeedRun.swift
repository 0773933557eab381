import ControlClient
import Glibc
import Posix
import Routing

/// The threads that watch a mount for pages.
final class UIFeedRun: Sendable {
  private let mount: UIMount
  private let cancellation: CancellationPipe
  let versions: UIVersionWatch
  private let listener = Locked<ResultListener?>(nil)

  /// Between two looks at the layers, of which not every change is an event.
  private static let layersMilliseconds: CInt = 2000
  /// Changes within this time are reported together.
  private static let settlingMilliseconds: CInt = 50

  init(_ mount: UIMount) throws(Errno) {
    self.mount = mount
    cancellation = try CancellationPipe()
    versions = try UIVersionWatch()
  }

  func start(_ feed: UIFeed) {
    try? Posix.Thread.startDetached(name: "ui-changes") { [weak feed] in self.watch { feed } }
    try? Posix.Thread.startDetached(name: "ui-results") { [weak feed] in self.listen { feed } }
  }

  func stop() {
    cancellation.cancel()
    listener.withLock { $0 }?.cancel()
  }

  private var isStopped: Bool { cancellation.isCancelled }

  // MARK: - Results of routes

  private func listen(_ feed: () -> UIFeed?) {
    guard let control = try? mount.mountPoint.controlFile(),
      let listener = try? ResultListener(control, since: nil)
    else { return }
    self.listener.withLock { $0 = listener }
    if isStopped { return }
    _ = try? listener.run { event in
      guard case .result(let result) = event, let json = result.pageJSON else { return }
      feed()?.publish("route", json)
    }
  }

  // MARK: - Changes of files and layers

  private func watch(_ feed: () -> UIFeed?) {
    do throws(Errno) {
      var layers = try? MountedLayers(of: mount.mountPoint)
      var changes = try UIChangeWatch.begin(mount)
      var nextLook = TimeSpec.monotonic.advanced(byMilliseconds: Self.layersMilliseconds)
      while !isStopped {
        wait(for: changes.rawValue, milliseconds: Self.layersMilliseconds)
        if isStopped { return }
        for path in versions.changed() { feed()?.publish("version", Self.change(path)) }
        var hasEnded = try report(changes.read(), feed)
        if !hasEnded, TimeSpec.monotonic >= nextLook {
          hasEnded = try look(at: &layers, &changes, feed)
          nextLook = TimeSpec.monotonic.advanced(byMilliseconds: Self.layersMilliseconds)
        }
        if hasEnded {
          feed()?.publish("ended", "{}")
          return
        }
        _ = cancellation.wait(milliseconds: Self.settlingMilliseconds)
      }
    } catch {
      unwatched(feed)
    }
  }

  /// Looks whether the mount has other layers, or these have to be watched anew.
  /// - Returns: whether the mount does not answer any more.
  private func look(
    at layers: inout MountedLayers?, _ changes: inout UIChangeWatch, _ feed: () -> UIFeed?
  ) throws(Errno) -> Bool {
    guard let present = try? MountedLayers(of: mount.mountPoint) else { return true }
    let isPresent = changes.isPresent(haveLayersChanged: present != layers)
    if !isPresent { changes = try UIChangeWatch.begin(mount) }
    // A page reads everything again after that, also what changed before the watches.
    if present != layers || !isPresent { feed()?.publish("layers", "{}") }
    layers = present
    return false
  }

  private func wait(for inotify: CInt, milliseconds: CInt) {
    var polled = [
      pollfd(fd: inotify, events: Int16(POLLIN), revents: 0),
      pollfd(fd: versions.rawValue, events: Int16(POLLIN), revents: 0),
      pollfd(fd: cancellation.readEnd, events: Int16(POLLIN), revents: 0),
    ]
    poll(&polled, nfds_t(polled.count), milliseconds)
  }

  /// Beyond the limits of inotify, a page learns only now and then that something may have changed.
  private func unwatched(_ feed: () -> UIFeed?) {
    while !cancellation.wait(milliseconds: 10_000) { feed()?.publish("overflow", "{}") }
  }

  /// - Returns: whether the mount was unmounted.
  private func report(_ outcome: UIChangeWatch.Outcome, _ feed: () -> UIFeed?) -> Bool {
    switch outcome {
    case .unmounted: return true
    case .anything: feed()?.publish("overflow", "{}")
    case .many(let count):
      feed()?.publish(
        "changes",
        JSONWriter.object { json in
          json.member("time", time(nil))
          json.member("count", count)
        })
    case .changed(let paths):
      for path in paths { feed()?.publish("change", Self.change(path)) }
    }
    return false
  }

  private static func change(_ path: [UInt8]) -> String {
    JSONWriter.object { json in
      json.member("time", time(nil))
      json.member("path", String(escaping: path))
      if String(validating: path, as: UTF8.self) == nil {
        json.member("encodedPath", PercentCoding.encoded(path: path))
      }
    }
  }
}
