import Foundation
import FoundationNetworking
import Posix

/// One load of a ``ResourceURLProtocol``, from its start to its answer.
///
/// The resource is read on a thread of its source's ``ReadingThreads``; the answer is given on the queue on which
/// URLSession starts and stops its loads, since its list of tasks may be touched there alone. No function leads
/// to that queue, but a task that is suspended and resumed is started again there, and then finds its answer
/// ready. Where there is no task, since something else than URLSession drives the protocol, the answer is
/// given on the reading thread.
final class ResourceLoad: @unchecked Sendable {
  /// A reading, which can be given up.
  private final class Reading: Sendable {
    private let state = Locked(true)
    var isWanted: Bool { state.withLock { $0 } }
    func giveUp() { state.withLock { $0 = false } }
  }

  private enum Phase {
    /// Not begun, or stopped.
    case idle
    case reading(Reading)
    /// Read, and about to be started again.
    case arriving(Result<LoadedResource, URLError>)
    /// To be answered at the next start.
    case ready(Result<LoadedResource, URLError>)
    case answered
  }

  /// It guards the phase; held while the client is called, so that nothing is said after a stop. A client may
  /// stop the load from within.
  private let lock = NSRecursiveLock()
  private var phase = Phase.idle
  private weak var owner: ResourceURLProtocol?

  /// Starts the load, or goes on with it.
  func start(for owner: ResourceURLProtocol) {
    lock.withLock {
      self.owner = owner
      switch phase {
      case .idle: read(owner.request)
      case .ready(let result): answer(result)
      case .reading, .arriving, .answered: break
      }
    }
  }

  /// Stops reading. Nothing is said to the client after this, unless the load is started again.
  func stop() {
    lock.withLock {
      guard case .reading(let reading) = phase else { return }
      reading.giveUp()
      phase = .idle
    }
  }

  private func read(_ request: URLRequest) {
    if let error = Self.refusal(of: owner?.task, request) { return answer(.failure(error)) }
    guard let url = request.url else { return answer(.failure(URLError(.badURL))) }
    guard let source = ResourceURLProtocol.source(of: url) else {
      return answer(.failure(URLError(.unsupportedURL, url, "the scheme is not registered")))
    }
    let reading = Reading()
    phase = .reading(reading)
    let part: ResourceSource.Part = request.httpMethod == "HEAD" ? .description : .all
    source.readers.run { [self] in
      guard let result = Self.result(of: url, part, in: source, while: { reading.isWanted }) else { return }
      arrive(result, of: reading)
    }
  }

  /// Why a task cannot be answered; nil if it can.
  private static func refusal(of task: URLSessionTask?, _ request: URLRequest) -> URLError? {
    guard let task, !(task is URLSessionDataTask), let url = request.url else { return nil }
    // A download task wants a temporary file, which URLSession on Linux takes from its own protocols only.
    return URLError(.unsupportedURL, url, "resources are loaded by data tasks alone")
  }

  /// - Returns: nil if the result is not wanted any more.
  private static func result(
    of url: URL, _ part: ResourceSource.Part, in source: ResourceSource, while isWanted: () -> Bool
  ) -> Result<LoadedResource, URLError>? {
    guard isWanted() else { return nil }
    do throws(URLError) {
      return try source.load(url, part: part, keepsOn: isWanted).map { .success($0) }
    } catch {
      return .failure(error)
    }
  }

  private func arrive(_ result: Result<LoadedResource, URLError>, of reading: Reading) {
    guard let task = beginArrival(result, of: reading) else { return }
    task.suspend()
    lock.withLock {
      if case .arriving = phase { phase = .ready(result) }
    }
    task.resume()
  }

  /// Takes the result in; without a task it is answered at once.
  private func beginArrival(
    _ result: Result<LoadedResource, URLError>, of reading: Reading
  ) -> URLSessionTask? {
    lock.withLock {
      guard case .reading(let current) = phase, current === reading else { return nil }
      guard let task = owner?.task else {
        answer(result)
        return nil
      }
      phase = .arriving(result)
      return task
    }
  }

  private func answer(_ result: Result<LoadedResource, URLError>) {
    phase = .answered
    guard let owner, let client = owner.client else { return }
    switch result {
    case .success(let resource):
      client.urlProtocol(owner, didReceive: resource.response, cacheStoragePolicy: .notAllowed)
      // In one piece: of several a completion handler would get the last.
      if !resource.data.isEmpty { client.urlProtocol(owner, didLoad: resource.data) }
      client.urlProtocolDidFinishLoading(owner)
    case .failure(let error):
      client.urlProtocol(owner, didFailWithError: error)
    }
  }
}
