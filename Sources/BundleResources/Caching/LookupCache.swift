import Foundation
import Posix

/// What look-ups in layers have found, for as long as nothing has changed in them.
///
/// Each look-up asks the watch first, so what it takes from the cache is what the files say now. Where there is no watch,
/// or not yet, nothing is cached. A thread of its own begins to watch, once some look-ups have been made.
final class LookupCache: Sendable {
  /// What is found while this is valid may be cached.
  struct Ticket: Equatable, Sendable { fileprivate let generation: Int }

  /// What was found.
  struct Entries {
    var tables: [TableQuery: SearchedTables] = [:]
    var urls: [ResourceQuery: URL?] = [:]

    fileprivate static let (maxTables, maxURLs) = (256, 4096)
  }

  private struct State {
    var watch: LayerWatch?
    /// Increases with each change.
    var generation = 0
    var entries = Entries()
    /// How many look-ups were made without a watch.
    var misses = 0
    /// After how many of them a thread begins to watch.
    var patience = LookupCache.patience
    var isStarting = false

    mutating func forget() {
      generation += 1
      entries = Entries()
    }

    /// Whether it is time to watch, which the caller then does.
    mutating func isDue() -> Bool {
      if isStarting { return false }
      misses += 1
      isStarting = misses >= patience
      return isStarting
    }

    /// Whether what is cached is true.
    @inline(__always)
    mutating func isValid() -> Bool {
      guard let watch else { return false }
      switch watch.poll() {
      case .unchanged: return true
      case .changed: forget()
      case .lost:
        self.watch = nil
        forget()
      }
      return self.watch != nil
    }
  }

  /// A program that asks for a few strings does not pay for a watch.
  private static let patience = 16
  private static let maxPatience = 1 << 20

  private let state = Locked(State())

  /// Whether the layers are watched.
  var isWatching: Bool { state.withLock { $0.isValid() } }

  /// Forgets everything.
  func removeAll() { state.withLock { $0.forget() } }

  /// Takes what was cached by the body.
  /// - Parameter layers: the layers, for a thread that begins to watch them.
  /// - Returns: what the body returns; otherwise the ticket with which to cache what is found, nil without a watch.
  @inline(__always)
  func find<Value>(in layers: LayerReader, _ body: (inout Entries) -> Value?) -> (Value?, Ticket?) {
    let (found, ticket, isDue) = state.withLock { state -> (Value?, Ticket?, Bool) in
      if state.isValid() {
        return (body(&state.entries), Ticket(generation: state.generation), false)
      }
      return (nil, nil, state.isDue())
    }
    if isDue { start(layers) }
    return (found, ticket)
  }

  /// Caches what was found unless something has changed since.
  func insert(_ ticket: Ticket, _ body: (inout Entries) -> Void) {
    state.withLock { state in
      guard state.generation == ticket.generation else { return }
      if state.entries.tables.count >= Entries.maxTables { state.entries.tables = [:] }
      if state.entries.urls.count >= Entries.maxURLs { state.entries.urls = [:] }
      body(&state.entries)
    }
  }

  /// Watches files on which a result depends, before they are read.
  /// - Returns: whether what is found from now on may be cached.
  func watch(_ files: [[UInt8]], _ ticket: Ticket) -> Bool {
    state.withLock { state in
      guard state.generation == ticket.generation, let watch = state.watch else { return false }
      do throws(Errno) { for file in files { try watch.watch(file: file) } } catch { return false }
      return true
    }
  }

  // MARK: - Start

  private func start(_ layers: LayerReader) {
    let thread: Void? = try? Posix.Thread.startDetached(name: "lookup-watch") { [self] in
      finishStart(try? layers.newWatch())
    }
    if thread == nil { finishStart(nil) }
  }

  private func finishStart(_ watch: LayerWatch?) {
    state.withLock { state in
      state.forget()
      (state.watch, state.isStarting, state.misses) = (watch, false, 0)
      state.patience = watch == nil ? min(state.patience * 2, Self.maxPatience) : Self.patience
    }
  }
}
