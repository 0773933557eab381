import Fuse
import Glibc
import Layers
import Posix
import Routing

enum CommandOutcome {
  case done
  case failed(RoutingError)
  case needsBarrier
  /// Another process continues with other layers, and answers.
  case handsOver
  /// That process answers once the other layers are visible.
  case needsLayers
  /// Nothing was done, since a layer may not answer; to be run again on a thread of that layer.
  case deferred

  /// Whether the rest of the write waits.
  var waits: Bool {
    switch self {
    case .done, .failed: false
    case .needsBarrier, .handsOver, .needsLayers, .deferred: true
    }
  }
}

/// Runs the lines that programs write to the control file.
final class ControlCommandRunner: Sendable {
  let control: ControlFile
  /// Continues writes that take long.
  let worker = SerialWorker(name: "control-write")
  /// Opens layers, which may not answer.
  let layerWorker = SerialWorker(name: "layer-switch")
  let heldLines: HeldLines
  let resolver: ResourceResolver
  let store: NodeStore
  let queue: InvalidationQueue
  let watcher: LayerWatcher?
  /// nil where no layer is an archive.
  let contents: ContentCache?
  /// nil if the layers cannot be changed.
  let layerSwitch: LayerSwitch?
  /// Open unless a successor has yet to compare the kernel's caches with the layers.
  let isCompared = Latch(isOpen: true)
  /// Opened in a successor once programs see its layers.
  let layersAreVisible = Latch()

  init(
    control: ControlFile, resolver: ResourceResolver, store: NodeStore, queue: InvalidationQueue,
    watcher: LayerWatcher?, contents: ContentCache?, layerSwitch: LayerSwitch?
  ) {
    self.control = control
    heldLines = HeldLines(control)
    self.resolver = resolver
    self.store = store
    self.queue = queue
    self.watcher = watcher
    self.contents = contents
    self.layerSwitch = layerSwitch
  }

  // MARK: - Writes

  func write(
    _ bytes: UnsafeRawBufferPointer, at offset: Int64, appends: Bool,
    _ reply: consuming Reply<ReplyKind.Write>
  ) {
    if ResentRequest.isCurrent, let former = control.reply(to: ResentRequest.current) {
      return ControlFileWrite.send(former, reply)
    }
    let writer = control.writer(reply.caller)
    let piece = control.take(bytes, at: offset, appends: appends, writer)
    for line in piece.completed { finish(line) }
    switch piece.kind {
    case .retries(let error): reply.fail(error.code.errno)
    case .continues(let line):
      ControlFileWrite(
        self, bytes, at: offset, after: line, sizeOfWrite: piece.sizeOfWrite, writer, reply
      ).begin()
    }
  }

  /// Runs the lines that are held once their programs have closed the file.
  func watchHeldLines() { heldLines.watch { [self] in finish($0) } }

  /// Runs the last line of a write(2) that turned out to be complete.
  func finish(_ write: WriteReassembler.PartialLine) {
    let origin = write.origin
    // A predecessor may have died in between.
    if control.progress(of: origin.request) != nil { return }
    if write.isSplit, write.writer.hasEnded {
      // It was killed between two parts of a write(2).
      _ = fail(write.line[...], RoutingError(.malformed, "the writer ended before the line did"), origin)
      return control.didReply()
    }
    switch run(write.line[...], write.writer, origin) {
    case .deferred where store.stack.runDeferred({ self.finish(write) }): return
    case .needsBarrier, .needsLayers: break
    // It was replied to before its line was complete.
    case .handsOver:
      appendApplied(write.line[...], origin)
      handOver {}
      return control.didReply()
    default: return control.didReply()
    }
    let apply: @Sendable () -> Void = {
      self.appendApplied(write.line[...], origin)
      self.control.didReply()
    }
    if !barrier(apply) { apply() }
  }

  /// Has another process go on with other layers, once every change that was finished before is visible. A process that
  /// is still comparing what it has inherited ends that first: its successor would have to compare all of it.
  /// - Parameter willHandOver: called right before.
  func handOver(_ willHandOver: @escaping @Sendable () -> Void) {
    let reached: @Sendable () -> Void = { [layerSwitch] in
      willHandOver()
      layerSwitch?.handOver()
    }
    if !barrier(reached) { reached() }
  }

  // MARK: - Lines

  /// - Parameter origin: of the result.
  func run(_ line: ArraySlice<UInt8>, _ writer: Caller, _ origin: ControlLog.Origin) -> CommandOutcome {
    do throws(RoutingError) {
      switch try ControlCommand(line.span) {
      case .ignored: return .done
      case .post(let url): return post(url, line, writer, origin)
      case .match(let url): return match(url, line, writer, origin)
      case .route(let route, let other):
        // Apart from other commands, so that the route is moved and not copied.
        return change(line, writer, origin) { routes throws(RoutingError) in
          try routes.add(route, before: other)
        }
      case let command:
        return change(line, writer, origin) { routes throws(RoutingError) in try routes.change(command) }
      }
    } catch { return fail(line, error, origin) }
  }

  private func change(
    _ line: ArraySlice<UInt8>, _ writer: Caller, _ origin: ControlLog.Origin,
    _ body: (inout RouteTable) throws(RoutingError) -> RouteOverlaps
  ) -> CommandOutcome {
    guard control.isOwner(writer) else { return fail(line, .notOwner, origin) }
    return control.appendResult(of: Self.trimmed(line).span, origin) { routes throws(RoutingError) in
      .applied(try body(&routes))
    }
  }

  private func post(
    _ url: RouteURL, _ line: ArraySlice<UInt8>, _ writer: Caller, _ origin: ControlLog.Origin
  ) -> CommandOutcome {
    if url.isScheme(BuiltInCommand.scheme) { return runBuiltIn(url, line, writer, origin) }
    if url.isScheme(resolver.scheme) { return resolve(url, for: writer, origin) }
    let listeners = control.listenerCount
    return control.appendResult(of: url.text.span, origin) { routes throws(RoutingError) in
      .posted(try routes.found(url), listeners: listeners)
    }
  }

  private func match(
    _ url: RouteURL, _ line: ArraySlice<UInt8>, _ writer: Caller, _ origin: ControlLog.Origin
  ) -> CommandOutcome {
    if url.isScheme(BuiltInCommand.scheme) { return fail(line, .noRoute(for: url), origin) }
    if url.isScheme(resolver.scheme) { return resolve(url, for: writer, origin) }
    return control.appendResult(of: url.text.span, origin) { routes throws(RoutingError) in
      .matched(try routes.found(url))
    }
  }

  private func resolve(
    _ url: RouteURL, for writer: Caller, _ origin: ControlLog.Origin
  ) -> CommandOutcome {
    // This reads the layers, so it comes before the control file's lock is taken.
    let result: Result<ResolvedResource, RoutingError>
    LayerAccess.clearDeferral()
    do throws(RoutingError) { result = .success(try resolver.resolve(url, for: writer)) } catch {
      result = .failure(error)
    }
    if LayerAccess.current == .shared, LayerAccess.deferredLayer != nil { return .deferred }
    return control.appendResult(of: url.text.span, origin) { _ throws(RoutingError) in
      .resolved(try result.get())
    }
  }

  private func runBuiltIn(
    _ url: RouteURL, _ line: ArraySlice<UInt8>, _ writer: Caller, _ origin: ControlLog.Origin
  ) -> CommandOutcome {
    guard control.isOwner(writer) else { return fail(line, .notOwner, origin) }
    do throws(RoutingError) {
      switch try BuiltInCommand(url) {
      case .sync: break
      case .invalidate(let path): queue.add(invalidations(of: path))
      case .layers(let paths): return try switchLayers(paths, origin.request)
      }
    } catch {
      return fail(line, error, origin)
    }
    return .needsBarrier
  }

  private func switchLayers(_ paths: [[UInt8]], _ request: UInt64) throws(RoutingError) -> CommandOutcome {
    guard let layerSwitch else {
      throw RoutingError(
        .notSupported, "a mount with 'survive=off' keeps its layers; unmount it and mount it again")
    }
    if layerSwitch.wasMade(request) { return .needsLayers }
    try layerSwitch.make(paths, request, store.usedLayers)
    return .handsOver
  }

  /// Has another process go on with the folders that have taken the places of archives. It is said in the layer's status if
  /// that is not possible.
  func reopenLayers() {
    guard let layerSwitch else { return }
    _ = layerWorker.add { [self] in
      // A folder that cannot be opened is looked at again when its path changes.
      if (try? layerSwitch.reopen(store.usedLayers)) == true { handOver {} }
    }
  }

  /// Appends the result of a line whose barrier was reached.
  func appendApplied(_ line: ArraySlice<UInt8>, _ origin: ControlLog.Origin) {
    _ = control.appendResult(of: BuiltInCommand.shown(Self.trimmed(line)).span, origin) { _ in .applied() }
  }

  private func fail(
    _ line: ArraySlice<UInt8>, _ error: RoutingError, _ origin: ControlLog.Origin
  ) -> CommandOutcome {
    control.appendResult(of: BuiltInCommand.shown(Self.trimmed(line)).span, origin) {
      _ throws(RoutingError) in throw error
    }
  }

  /// The line as a result shows it: without trailing white space, cut to the longest URL.
  private static func trimmed(_ line: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    var end = line.startIndex + min(line.count, RouteURL.maxLength)
    while end > line.startIndex, isWhitespace(line[end - 1]) { end -= 1 }
    return line[..<end]
  }

  private static func isWhitespace(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"), UInt8(ascii: "\n"): true
    default: false
    }
  }

  private func invalidations(of path: [[UInt8]]) -> [Invalidation] {
    // All of it, since entries are decompressed again quickly.
    contents?.evictAll()
    return store.table.withLock { table in
      var slots = [NodeTable.root]
      for (depth, name) in path.enumerated() {
        let children = slots.flatMap { table.directories(named: name, in: $0) }
        if children.isEmpty {
          guard depth == path.count - 1 else { return [] }
          return slots.flatMap { Self.invalidations(of: name, in: $0, table) }
        }
        slots = children
      }
      return slots.map { Invalidation(subject: .subtree(table.number(of: $0))) }
    }
  }
}

extension ControlCommandRunner {
  private static func invalidations(
    of name: [UInt8], in directory: UInt32, _ table: NodeTable
  ) -> [Invalidation] {
    [Invalidation(subject: .name(table.number(of: directory), name, layer: 0), aspects: .entry)]
      + table.nodes(named: name, in: directory)
      .map { Invalidation(subject: .file(table.number(of: $0)), aspects: .content) }
  }
}

extension RouteTable {
  /// - Throws: ENOENT if no route takes it; EINVAL.
  func found(_ url: RouteURL) throws(RoutingError) -> FoundRoute {
    guard let route = try find(url) else { throw .noRoute(for: url) }
    return route
  }

  fileprivate mutating func add(_ route: Route, before other: String?) throws(RoutingError) -> RouteOverlaps {
    guard let other else { return try appendFindingOverlaps(route) }
    let overlaps = overlaps(of: route.pattern)
    try insert(route, before: other)
    return overlaps
  }

  mutating func change(_ command: ControlCommand) throws(RoutingError) -> RouteOverlaps {
    switch command {
    case .route(let route, let other): return try add(route, before: other)
    case .unroute(let name):
      if remove(name: name) == 0 { throw RoutingError(.noRoute, "no route is named \(name)") }
    case .reset: removeAll()
    case .ignored, .post, .match: break
    }
    return .none
  }
}

extension RoutingError {
  fileprivate static let notOwner = RoutingError(
    .notPermitted, "only the mount's owner and root may do that, and no set-user-ID program")
}
