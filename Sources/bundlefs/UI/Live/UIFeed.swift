import Posix
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

  private let state = Locked(State())

  /// A stream for one page.
  /// - Parameter mount: the mount that this is the feed of.
  func open(_ mount: UIMount) throws(WebError) -> EventStream {
    let id = state.withLock { state in
      state.next += 1
      return state.next
    }
    let stream: EventStream
    let fresh: UIFeedRun
    do throws(Errno) {
      stream = try EventStream { [weak self] in self?.remove(id) }
      fresh = try UIFeedRun(mount)
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
