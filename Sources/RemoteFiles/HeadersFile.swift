import Posix

/// A file with headers of the user's own, such as a bearer token, that is read again once it was changed.
public final class HeadersFile: Sendable {
  private let path: [UInt8]
  private let state = Locked(State())

  private struct State {
    /// Of the file whose rules these are: they are read again when any of it differs.
    var status: FileStatus?
    var rules = HeaderRules()
  }

  private static let mostBytes: UInt64 = 64 << 10

  /// - Parameter path: absolute. A symbolic link is followed at each reading: a secret is often replaced by moving one.
  public init(_ path: [UInt8]) { self.path = path }

  /// Reads the file if it was changed.
  /// - Throws: `headers`, if it cannot be read or is malformed.
  public func check() throws(RemoteFault) { _ = try rules() }

  /// The headers that are sent to a host.
  /// - Throws: `headers`.
  func headers(for origin: RemoteURL.Origin) throws(RemoteFault) -> [[UInt8]] {
    try rules().headers(for: origin)
  }

  private func rules() throws(RemoteFault) -> HeaderRules {
    let (text, status): ([UInt8]?, FileStatus)
    do throws(Errno) { (text, status) = try read() } catch { throw .headers("\(error)") }
    if let text { return try rules(of: text, status) }
    return state.withLock { $0.rules }
  }

  /// - Returns: no text if the rules of the file as it is are known.
  private func read() throws(Errno) -> ([UInt8]?, FileStatus) {
    // Without waiting for the writer of a named pipe.
    let file = try Descriptor.open(path, [.read, .nonBlocking])
    let status = try file.attributes()
    guard status.isRegular else { throw .invalidArgument }
    guard status.size <= Self.mostBytes else { throw .fileTooLarge }
    if state.withLock({ $0.status == status }) { return (nil, status) }
    return (try file.readAll(limit: Int(Self.mostBytes)), status)
  }

  private func rules(of text: [UInt8], _ status: FileStatus) throws(RemoteFault) -> HeaderRules {
    do throws(HeaderRules.Mistake) {
      let rules = try HeaderRules(text)
      state.withLock { ($0.status, $0.rules) = (status, rules) }
      return rules
    } catch {
      throw .headers("line \(error.line): \(error.reason)")
    }
  }
}
