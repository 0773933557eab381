import ControlClient
import Glibc
import Posix
import Routing
import WebServer

/// Reports to pages what changes in a mount, while there is one that listens. It then waits for results at the control
/// file, which `bundlefs unmount` ends.
final class UIFeed: Sendable {
  private struct State {
    var streams: [Int: Listener] = [:]
    var next = 0
    var run: UIFeedRun?
    var isEnded = false
  }

  /// The connection keeps the stream.
  private struct Listener {
    weak var stream: EventStream?
  }

  private let mountPoint: MountPoint
  private let state = Locked(State())

  init(_ mountPoint: MountPoint) { self.mountPoint = mountPoint }

  /// A stream for one page.
  func open() throws(WebError) -> EventStream {
    let id = state.withLock { state in
      state.next += 1
      return state.next
    }
    let stream: EventStream
    let fresh: UIFeedRun
    do throws(Errno) {
      stream = try EventStream { [weak self] in self?.remove(id) }
      fresh = try UIFeedRun(mountPoint)
    } catch {
      throw WebError(503, "\(error)")
    }
    let (run, isEnded) = state.withLock { state -> (UIFeedRun?, Bool) in
      if state.isEnded { return (nil, true) }
      state.streams[id] = Listener(stream: stream)
      if state.run != nil { return (nil, false) }
      state.run = fresh
      return (fresh, false)
    }
    if isEnded { stream.close() }
    run?.start(self)
    return stream
  }

  /// Reports from now on what changes at a path in any layer, while there is a page.
  func show(_ path: [[UInt8]], _ layers: UILayers) { state.withLock { $0.run }?.versions.show(path, layers) }

  private func remove(_ id: Int) {
    let run = state.withLock { state -> UIFeedRun? in
      state.streams[id] = nil
      return state.streams.isEmpty ? state.run.take() : nil
    }
    run?.stop()
  }

  /// Sends an event to all pages.
  func publish(_ event: String, _ data: String) {
    for stream in streams { stream.send(event, data) }
  }

  private var streams: [EventStream] {
    state.withLock { state in state.streams.values.compactMap(\.stream) }
  }

  /// Ends all streams after what has been sent.
  func end() {
    let run = state.withLock { state in
      state.isEnded = true
      return state.run.take()
    }
    run?.stop()
    for stream in streams { stream.close() }
  }
}

/// The threads that watch a mount for pages.
final class UIFeedRun: Sendable {
  private let mountPoint: MountPoint
  private let cancellation: CancellationPipe
  let versions: UIVersionWatch
  private let listener = Locked<ResultListener?>(nil)

  /// Between two looks at the layers.
  private static let layersMilliseconds: CInt = 2000
  /// Changes within this time are reported together.
  private static let settlingMilliseconds: CInt = 50
  /// More changed paths at once are reported by their number.
  private static let mostPaths = 100

  init(_ mountPoint: MountPoint) throws(Errno) {
    self.mountPoint = mountPoint
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
    guard let control = try? mountPoint.controlFile(),
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
    let name = (try? mountPoint.controlFile())?.name ?? []
    var layers = try? MountedLayers(of: mountPoint)
    guard let inotify = try? Inotify() else { return unwatched(feed) }
    var tree = WatchedTree(inotify, roots: [.mount(mountPoint.path, control: name)])
    do throws(Errno) {
      try tree.watchRoots()
      while !isStopped {
        wait(for: tree.rawValue, milliseconds: Self.layersMilliseconds)
        if isStopped { return }
        for path in versions.changed() { feed()?.publish("version", Self.change(path)) }
        let isUnmounted = try report(tree.read(), feed)
        let present = try? MountedLayers(of: mountPoint)
        if isUnmounted || present == nil {
          feed()?.publish("ended", "{}")
          return
        }
        if present != layers { feed()?.publish("layers", "{}") }
        layers = present
        _ = cancellation.wait(milliseconds: Self.settlingMilliseconds)
      }
    } catch {
      unwatched(feed)
    }
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
  private func report(_ outcome: WatchedTree.Outcome, _ feed: () -> UIFeed?) -> Bool {
    switch outcome {
    case .unmounted: return true
    case .anything: feed()?.publish("overflow", "{}")
    case .changed(let paths) where paths.count > Self.mostPaths:
      feed()?.publish(
        "changes",
        JSONWriter.object { json in
          json.member("time", time(nil))
          json.member("count", paths.count)
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
