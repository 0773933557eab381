import Glibc
import Posix

/// Server-sent events for one page. A page that does not read loses events, and has to ask for everything; it holds
/// up no other.
public final class EventStream: WebStream {
  private struct State {
    var text: [UInt8] = []
    var isClosed = false
    var hasOverflown = false
  }

  /// The most bytes that wait for the page.
  private static let limit = 256 << 10
  /// Between two signs of life, by which both sides notice that the connection has ended.
  private static let pingMilliseconds: CInt = 15_000

  private let state = Locked(State())
  private let wakeUp: EventFD
  private let onEnd: @Sendable () -> Void

  /// - Parameter onEnd: is called when the connection has ended.
  public init(onEnd: @escaping @Sendable () -> Void) throws(Errno) {
    wakeUp = try EventFD()
    self.onEnd = onEnd
    state.withLock { $0.text = Array(": connected\n\n".utf8) }
  }

  deinit { onEnd() }

  /// Adds an event.
  /// - Parameter data: one line, such as JSON.
  public func send(_ event: String, _ data: String) {
    state.withLock { state in
      if state.isClosed || state.hasOverflown { return }
      state.text += "event: \(event)\ndata: \(data)\n\n".utf8
      if state.text.count <= Self.limit { return }
      // A part of the last event may have been sent.
      state.text = Array("\n\nevent: overflow\ndata: {}\n\n".utf8)
      state.hasOverflown = true
    }
    wakeUp.signal()
  }

  /// Ends the stream after what has been sent.
  public func close() {
    state.withLock { $0.isClosed = true }
    wakeUp.signal()
  }

  /// Waits for events.
  public func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) -> Int? {
    let end = TimeSpec.monotonic.advanced(byMilliseconds: Self.pingMilliseconds)
    repeat {
      if let count = take(into: buffer) { return count }
      wakeUp.wait(or: -1, milliseconds: Self.pingMilliseconds)
    } while TimeSpec.monotonic < end
    let ping = Array(": ping\n\n".utf8.prefix(buffer.count))
    buffer.copyBytes(from: ping)
    return ping.count
  }

  /// - Returns: 0 at the end; nil if nothing waits.
  private func take(into buffer: UnsafeMutableRawBufferPointer) -> Int? {
    state.withLock { state in
      if state.text.isEmpty { return state.isClosed ? 0 : nil }
      let part = state.text.prefix(buffer.count)
      buffer.copyBytes(from: part)
      state.text.removeFirst(part.count)
      if state.text.isEmpty { state.hasOverflown = false }
      return part.count
    }
  }
}
