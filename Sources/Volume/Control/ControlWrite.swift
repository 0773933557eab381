import Fuse
import Glibc
import Layers
import Posix
import Routing

/// A write to the control file: its lines are done one after the other. The answer is how many bytes were
/// done: all, or those before the first line that failed; or that line's error if it is the first.
struct ControlWrite: Sendable {
  private let volume: Volume
  private let writer: Caller
  /// Where it ends in the file.
  private let end: Int64
  private let bytes: [UInt8]
  /// How many of the bytes came with the piece before.
  private let carried: Int
  private let deferred: DeferredReply<ReplyKind.Write>
  private var done = 0

  /// A write, or a piece of one, that goes on with a line.
  init(
    _ volume: Volume, _ bytes: UnsafeRawBufferPointer, at offset: Int64, after line: [UInt8],
    _ reply: consuming Reply<ReplyKind.Write>
  ) {
    self.volume = volume
    writer = reply.caller
    end = offset + Int64(bytes.count)
    self.bytes = line + bytes
    carried = line.count
    deferred = DeferredReply(reply)
  }

  /// How long it may keep the thread that it is run by, in milliseconds: others wait for that thread.
  private static let turn: CInt = 2

  /// Does the lines that are left. What waits for a barrier goes on after it, on another thread: a request's
  /// must not wait for what may wait for requests. What takes long goes on on a thread of its own.
  func run() { run(until: TimeSpec.monotonic.advanced(byMilliseconds: Self.turn)) }

  /// - Parameter turnEnd: nil on the thread of its own.
  private func run(until turnEnd: TimeSpec?) {
    var rest = self
    while let line = rest.next {
      if let turnEnd, turnEnd < TimeSpec.monotonic {
        let after = rest
        if volume.lines.add({ after.run(until: nil) }) { return }
      }
      if line.endIndex == bytes.count, volume.control.keeps(line, until: end, writer) {
        rest.skip(line)
        break
      }
      if WriteReassembler.wasZeroed(line, endingAt: end - Int64(bytes.count - line.endIndex)) {
        return rest.sendLost()
      }
      switch volume.carryOut(line, writer) {
      case .done: rest.skip(line)
      case .refused(let error): return rest.send(error)
      case .awaitsBarrier:
        rest.skip(line)
        let after = rest
        let waits = volume.barrier {
          after.volume.apply(line)
          after.run()
        }
        if waits { return }
        // The mount ends: nothing is waited for any more.
        volume.apply(line)
      }
    }
    rest.send(nil)
  }

  /// The next line, with the newline at its end if it has one.
  private var next: ArraySlice<UInt8>? {
    if done == bytes.count { return nil }
    let end = bytes[done...].firstIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? bytes.count
    return bytes[done..<end]
  }

  private mutating func skip(_ line: ArraySlice<UInt8>) { done += line.count }

  /// Answers that the line has to be written once more.
  private func sendLost() {
    guard let reply = deferred.take() else { return }
    defer { volume.control.wasAnswered() }
    if done > carried { reply.send(count: done - carried) } else { reply.fail(Errno(rawValue: EAGAIN)) }
  }

  private func send(_ error: RoutingError?) {
    guard let reply = deferred.take() else { return }
    defer { volume.control.wasAnswered() }
    guard let error, done == 0 else { return reply.send(count: done - carried) }
    if carried > 0, let line = next { volume.control.refused(line.dropFirst(carried), writer, error) }
    reply.fail(error.code.errno)
  }
}

extension Volume {
  /// Carries out what is written to the control file.
  func writeControl(
    _ bytes: UnsafeRawBufferPointer, at offset: Int64, _ reply: consuming Reply<ReplyKind.Write>
  ) {
    let (piece, before) = control.take(bytes, at: offset, reply.caller)
    if let before { finish(before) }
    switch piece {
    case .retries(let error): reply.fail(error.code.errno)
    case .continues(let line): ControlWrite(self, bytes, at: offset, after: line, reply).run()
    }
  }

  /// Carries out the end of a write that turned out to be whole.
  func finish(_ write: WriteReassembler.PartialLine) {
    guard case .awaitsBarrier = carryOut(write.line[...], write.writer) else { return control.wasAnswered() }
    let apply: @Sendable () -> Void = {
      self.apply(write.line[...])
      self.control.wasAnswered()
    }
    if !barrier(apply) { apply() }
  }

  /// What becomes of a line.
  enum CommandOutcome {
    case done
    case refused(RoutingError)
    /// It is done once a barrier is reached.
    case awaitsBarrier
  }

  /// Does one line of a write to the control file.
  func carryOut(_ line: ArraySlice<UInt8>, _ writer: Caller) -> CommandOutcome {
    let command: ControlCommand
    do throws(RoutingError) { command = try ControlCommand(line) } catch { return refuse(line, error) }
    switch command {
    case .ignored: return .done
    case .post(let url) where url.scheme == BuiltIn.scheme: return carryOut(url, line, writer)
    case .match(let url) where url.scheme == BuiltIn.scheme: return refuse(line, .noRoute(for: url))
    case .post(let url) where url.scheme == resources.scheme,
      .match(let url) where url.scheme == resources.scheme:
      return resolve(url, for: writer)
    case .post(let url):
      return fate(control.note(url.text) { routes throws(RoutingError) in .posted(try routes.found(url)) })
    case .match(let url):
      return fate(control.note(url.text) { routes throws(RoutingError) in .matched(try routes.found(url)) })
    case .route, .unroute, .reset:
      guard control.isOwner(writer) else { return refuse(line, .notOwner) }
      return fate(
        control.note(Self.plain(line)) { routes throws(RoutingError) in
          .applied(overlaps: try routes.change(command))
        })
    }
  }

  /// Resolves the URL of a resource.
  private func resolve(_ url: RouteURL, for writer: Caller) -> CommandOutcome {
    // It reads the layers, so it comes before the lock.
    let outcome: Result<ResolvedResource, RoutingError>
    do throws(RoutingError) { outcome = .success(try resolved(url, for: writer)) } catch {
      outcome = .failure(error)
    }
    return fate(control.note(url.text) { _ throws(RoutingError) in .resolved(try outcome.get()) })
  }

  /// Notes that what waited for a barrier is done.
  func apply(_ line: ArraySlice<UInt8>) {
    _ = control.note(Self.plain(line)) { _ in .applied(overlaps: []) }
  }

  /// Has a function called when every change finished by now is visible through the mount, and all that was to
  /// be taken back from the kernel is.
  /// - Returns: false when it will not be, since the mount ends.
  fileprivate func barrier(_ reached: @escaping @Sendable () -> Void) -> Bool {
    if let coherence { coherence.barrier(reached) } else { queue.addBarrier(reached) }
  }

  private func carryOut(_ url: RouteURL, _ line: ArraySlice<UInt8>, _ writer: Caller) -> CommandOutcome {
    guard control.isOwner(writer) else { return refuse(line, .notOwner) }
    do throws(RoutingError) {
      if case .invalidate(let path) = try BuiltIn(url) { queue.add(invalidations(of: path)) }
    } catch {
      return refuse(line, error)
    }
    return .awaitsBarrier
  }

  private func refuse(_ line: ArraySlice<UInt8>, _ error: RoutingError) -> CommandOutcome {
    fate(control.note(Self.plain(line)) { _ throws(RoutingError) in throw error })
  }

  private func fate(_ refusal: RoutingError?) -> CommandOutcome { refusal.map { .refused($0) } ?? .done }

  /// The line without its end, as a result shows it.
  private static func plain(_ line: ArraySlice<UInt8>) -> [UInt8] {
    var line = line.prefix(RouteURL.maxLength)
    while let last = line.last, [0x0A, 0x0D, 0x20, 0x09].contains(last) { line.removeLast() }
    return Array(line)
  }

  /// What drops all that is cached of a path and of what is below.
  private func invalidations(of path: [[UInt8]]) -> [Invalidation] {
    // Not by path: what is unpacked is quickly unpacked again.
    options.contents?.dropAll()
    return table.withLock { table in
      var slot = NodeTable.root
      for (depth, name) in path.enumerated() {
        let child = table.directory(name, in: slot)
        if child == 0 {
          guard depth == path.count - 1 else { return [] }
          let directory = table.number(of: slot)
          return [Invalidation(subject: .name(directory, name, layer: 0), aspects: .entry)]
            + table.nodes(named: name, in: slot)
            .map { Invalidation(subject: .file(table.number(of: $0)), aspects: .content) }
        }
        slot = child
      }
      return [Invalidation(subject: .subtree(table.number(of: slot)))]
    }
  }
}

/// What is built in under the scheme `bundlefs:`.
enum BuiltIn: Equatable {
  /// `bundlefs:///sync`
  case sync
  /// `bundlefs:///invalidate[/PATH]`; the path's names from the root.
  case invalidate([[UInt8]])

  static let scheme = "bundlefs"

  /// Reads a URL of the scheme.
  /// - Throws: EINVAL for a path that no file can have; ENOENT for what is not built in.
  init(_ url: RouteURL) throws(RoutingError) {
    let names = url.components
    let command = url.hasHost ? nil : names.first.map { String(decoding: $0, as: UTF8.self) }
    switch command {
    case "sync" where names.count == 1: self = .sync
    case "invalidate":
      let path = Array(names.dropFirst())
      if path.contains(where: { $0.contains(0) || $0.contains(UInt8(ascii: "/")) }) {
        throw RoutingError(.malformed, "a name in the path holds '/' or NUL, which no file's does")
      }
      self = .invalidate(path)
    default:
      throw RoutingError(
        .noRoute, "only bundlefs:///sync and bundlefs:///invalidate[/PATH] are built in")
    }
  }
}

extension RouteTable {
  /// What a URL becomes.
  /// - Throws: ENOENT if no route takes it; EINVAL.
  fileprivate func found(_ url: RouteURL) throws(RoutingError) -> RouteMatch {
    guard let match = try match(url) else { throw .noRoute(for: url) }
    return match
  }

  /// Carries out a change.
  /// - Returns: the routes that a new one overlaps.
  fileprivate mutating func change(_ command: ControlCommand) throws(RoutingError) -> [String] {
    switch command {
    case .route(let route): return try append(route)
    case .unroute(let name):
      if remove(name: name) == 0 { throw RoutingError(.noRoute, "no route is named \(name)") }
    case .reset: removeAll()
    case .ignored, .post, .match: break
    }
    return []
  }
}

extension RoutingError {
  fileprivate static let notOwner = RoutingError(
    .notPermitted, "only the mount's owner and root may do that")
}

extension RoutingErrorCode {
  /// The number that write(2) answers.
  fileprivate var errno: Errno {
    switch self {
    case .malformed: .invalidArgument
    case .noRoute: .noSuchFileOrDirectory
    case .shadowed: Errno(rawValue: EEXIST)
    case .tooLong: Errno(rawValue: E2BIG)
    case .notPermitted: .notPermitted
    case .forbidden: .permissionDenied
    case .unreadable: .ioError
    }
  }
}
