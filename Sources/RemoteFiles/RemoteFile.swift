import Posix
import Synchronization

/// How files on servers are read.
public struct RemoteSettings: Sendable {
  /// Opens the cache folder, when a file on a server is opened; nil to keep blocks in memory alone.
  public var openFolder: @Sendable () -> CacheFolder? = { nil }
  /// Milliseconds from one question whether the file was changed to the next.
  public var refresh: CInt = 60_000
  /// Headers of the user's own, for the servers that URLs name.
  public var headers: HeadersFile?
  /// Milliseconds after which a read no longer waits for the server.
  public var timeout: CInt = 30_000

  /// The defaults, without a cache folder.
  public init() {}
}

/// A file on a web server, of which one state is the present one.
public final class RemoteFile: Sendable {
  /// Its URL.
  public let url: RemoteURL
  private let settings: RemoteSettings
  private let folder: CacheFolder?
  private let server: ObjectServer
  private let state = Locked(State())
  private let wake: Wake

  private struct State {
    var present: RemoteObject?
    /// Why the present state is no longer known to be that of the server; nil if it is.
    var fault: RemoteFault?
    var onAnswer: (@Sendable () -> Void)?
    var isRunning = false
  }

  /// Wakes the thread that asks the server, and ends it.
  private final class Wake: Sendable {
    let event: EventFD
    let isOver = Atomic(false)
    init() throws(Errno) { event = try EventFD() }
  }

  /// - Throws: `noLibrary`; `local`.
  public init(_ url: RemoteURL, _ settings: RemoteSettings) throws(RemoteFault) {
    (self.url, self.settings, folder) = (url, settings, settings.openFolder())
    server = try ObjectServer(url, timeout: settings.timeout, headers: settings.headers)
    do throws(Errno) { wake = try Wake() } catch { throw .local(error) }
  }

  deinit {
    wake.isOver.store(true, ordering: .relaxed)
    wake.event.signal()
  }

  private var urlHashes: (UInt64, UInt64) {
    (BlockChecksum.of(url.text, seed: 1), BlockChecksum.of(url.text, seed: 2))
  }

  /// The state that was read last.
  public var present: RemoteObject? { state.withLock { $0.present } }
  /// Why the server's present state is not the one that is read; nil if it is, or if the server does not answer.
  public var fault: RemoteFault? { state.withLock { $0.fault } }

  // MARK: - States

  /// The present state; asks the server unless one is known. Where it does not answer, the state that was read last by any
  /// mount is taken from the cache.
  public func open() throws(RemoteFault) -> RemoteObject {
    if let present, !present.hasChanged { return present }
    do throws(RemoteFault) { return try refresh() } catch {
      guard case .unreachable = error, present == nil, let file = folder?.lastFile(url: urlHashes) else {
        throw error
      }
      let object = object(file)
      state.withLock { $0.present = object }
      return object
    }
  }

  /// Continues with the state that a predecessor has read.
  /// - Parameters:
  ///   - descriptor: a copy of `RemoteObject.descriptor`.
  ///   - isPresent: whether it was the present one.
  /// - Returns: nil if the file is not one of this URL.
  public func restore(_ descriptor: consuming Descriptor, isPresent: Bool) -> RemoteObject? {
    guard let header = BlockFile.header(of: descriptor), header.url == urlHashes else { return nil }
    let object = object(BlockFile(descriptor, header))
    if isPresent { state.withLock { $0.present = object } }
    return object
  }

  /// Asks the server for its present state.
  @discardableResult
  private func refresh() throws(RemoteFault) -> RemoteObject {
    let known = present
    do throws(RemoteFault) {
      let found = try found(try server.ask(known: known?.file.header.validator), known)
      state.withLock { ($0.present, $0.fault) = (found, nil) }
      if let known, known !== found { known.setChanged() }
      return found
    } catch {
      if case .unreachable = error { throw error }
      state.withLock { $0.fault = error }
      throw error
    }
  }

  private func found(
    _ answer: ObjectServer.Answer, _ known: RemoteObject?
  ) throws(RemoteFault) -> RemoteObject {
    switch answer {
    case .unchanged:
      guard let known else { throw .violation("a status 304 without a condition") }
      return known
    case .part(let part, let validator, let bytes):
      let header = header(part.total, validator, isWhole: false)
      if let known, known.file.header == header, !known.hasChanged { return known }
      let found = object(try file(header))
      found.add(bytes, at: part.range.lowerBound)
      return found
    case .noRanges(let validator):
      // Without a validator there is no way to know of a change.
      if let known, known.isWhole, !known.hasChanged,
        !validator.isPresent || known.file.header.validator.matches(validator)
      {
        return known
      }
      return try download(validator)
    }
  }

  private func header(_ size: UInt64, _ validator: Validator, isWhole: Bool) -> BlockFile.Header {
    BlockFile.Header(
      url: urlHashes, size: size, validator: validator,
      modified: (validator.time ?? .now).clampedNanoseconds, isWhole: isWhole)
  }

  private func object(_ file: BlockFile) -> RemoteObject {
    RemoteObject(file, of: server, folder) { [wake] in wake.event.signal() }
  }

  private func file(_ header: BlockFile.Header) throws(RemoteFault) -> BlockFile {
    if header.size > BlockFile.largestObject { throw .local(.fileTooLarge) }
    do throws(Errno) {
      // What has no validator is another object each time.
      if header.validator.isPresent, let file = try? folder?.file(for: header) { return file }
      let file = BlockFile(try temporary(), header)
      try file.begin()
      return file
    } catch { throw .local(error) }
  }

  private func temporary() throws(Errno) -> Descriptor {
    if let folder {
      do throws(Errno) { return try folder.unnamedFile() } catch { if error != .notSupported { throw error } }
    }
    return try withCName(Array("remote blocks".utf8)) { name throws(Errno) in
      try Descriptor.memory(name: name)
    }
  }

  /// Downloads the object; or finds it complete in the cache.
  private func download(_ validator: Validator) throws(RemoteFault) -> RemoteObject {
    if validator.isPresent, let last = folder?.lastFile(url: urlHashes), last.header.isWhole,
      last.header.validator.matches(validator), (0..<last.blockCount).allSatisfy({ last.read($0) != nil })
    {
      return object(last)
    }
    let spool: SharedDescriptor
    do throws(Errno) { spool = SharedDescriptor(try temporary()) } catch { throw .local(error) }
    var (received, seen) = (UInt64(0), validator)
    try server.download { validator in
      seen = validator
    } _: { part throws(Errno) in
      if received + UInt64(part.count) > BlockFile.largestObject { throw .fileTooLarge }
      try spool.descriptor.write(part, at: Int64(received))
      received += UInt64(part.count)
    }
    let found = try file(header(received, seen, isWhole: true))
    do throws(Errno) { try Self.copy(spool, to: found) } catch { throw .local(error) }
    return object(found)
  }

  private static func copy(_ spool: SharedDescriptor, to file: BlockFile) throws(Errno) {
    for block in 0..<file.blockCount {
      let range = file.range(of: block)
      try withUnsafeTemporaryBytes(range.count) { bytes throws(Errno) in
        guard try spool.descriptor.read(into: bytes, at: Int64(range.lowerBound)) == range.count else {
          throw .ioError
        }
        try file.write(UnsafeRawBufferPointer(bytes), block)
      }
    }
  }

  // MARK: - Changes

  /// Asks the server from now on, by a thread of its own, whether the file was changed.
  /// - Parameter onAnswer: called after each answer of the server, by that thread.
  public func follow(_ onAnswer: @escaping @Sendable () -> Void) {
    let starts = state.withLock { state in
      state.onAnswer = onAnswer
      defer { state.isRunning = true }
      return !state.isRunning
    }
    if !starts { return }
    do throws(Errno) {
      try Thread.startDetached(name: "remote-file") { [weak self, wake, refresh = settings.refresh] in
        while !wake.isOver.load(ordering: .relaxed) {
          wake.event.wait(or: -1, milliseconds: refresh)
          if wake.isOver.load(ordering: .relaxed) { return }
          self?.check()
        }
      }
    } catch { state.withLock { $0.isRunning = false } }
  }

  private func check() {
    // What the server answers otherwise is in `fault`.
    do throws(RemoteFault) { try refresh() } catch { if case .unreachable = error { return } }
    state.withLock { $0.onAnswer }?()
  }

  // MARK: - Status

  /// What there is to know of a file on a server.
  public struct Statistics: Sendable {
    /// The URL, redacted.
    public let url: [UInt8]
    /// Bytes.
    public let size: UInt64
    public let cached: UInt64
    /// Whether it was downloaded as a whole, since the server has no ranges or no validators.
    public let isWhole: Bool
    /// Seconds since the server answered last; nil if it has not yet.
    public let answered: Int?
    /// Seconds since which it does not answer; nil if it does.
    public let silent: Int?
    /// Why the server's present state is not shown; nil if it is.
    public let fault: String?
  }

  /// The present statistics.
  public var statistics: Statistics {
    let (answers, present, now) = (server.state, present, TimeSpec.monotonic)
    return Statistics(
      url: url.redacted, size: present?.size ?? 0,
      cached: min(present?.file.usedBytes ?? 0, present?.size ?? 0),
      isWhole: present?.isWhole ?? false, answered: answers.last.map { Int(now.seconds - $0.seconds) },
      silent: answers.silentSince.map { Int(now.seconds - $0.seconds) }, fault: fault?.message)
  }
}
