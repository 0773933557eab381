import Foundation
import FoundationNetworking
import Posix

/// One load of a ``ResourceURLProtocol``, from its start to its answer.
///
/// The resource is read on a thread of its source's ``LoaderPool``; the answer is given on the queue on which
/// URLSession starts and stops its loads, since its list of tasks may be touched there alone. No function leads
/// to that queue, but a task that is suspended is stopped there: the load suspends the task, and answers in the
/// stop that follows. The task stays suspended from then on, lest its owner, who may suspend and resume it at any
/// moment, have it started between the answer and its arrival: starting a task that is over ends the program.
/// So the stop has to be the load's own. One that comes before the load knows its suspension to be in force
/// may be the owner's; then the load takes its suspension back, and tries again at the next start.
///
/// Where there is no task, since something else than URLSession drives the protocol, the answer is given on the
/// reading thread.
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
    /// Read; the task is being suspended. Whether there was a stop meanwhile.
    case arriving(Result<LoadedResource, URLError>, wasStopped: Bool)
    /// The task is suspended by the load; the stop that belongs to that is on its way, and brings the answer.
    case held(Result<LoadedResource, URLError>)
    /// To arrive again at the next start, which is on its way or is for the task's owner to bring about.
    case waiting(Result<LoadedResource, URLError>)
    case answered
  }

  /// It guards the phase; held while the client is called, so that nothing is said after a stop. A client may
  /// stop the load from within.
  private let lock = NSRecursiveLock()
  private var phase = Phase.idle
  private weak var owner: ResourceURLProtocol?
  /// Where it is read, from the first reading on.
  private var readers: LoaderPool?

  /// Starts the load, or goes on with it.
  func start(for owner: ResourceURLProtocol) {
    lock.withLock {
      self.owner = owner
      switch phase {
      case .idle: read(owner.request)
      case .waiting(let result): arriveAgain(result)
      case .reading, .arriving, .held, .answered: break
      }
    }
  }

  /// Stops reading, or gives the answer that waits for this. Nothing is said to the client after it, unless the
  /// load is started again.
  func stop() {
    lock.withLock {
      switch phase {
      case .reading(let reading):
        reading.giveUp()
        phase = .idle
      case .arriving(let result, _): phase = .arriving(result, wasStopped: true)
      case .held(let result):
        // Of a cancelled task URLSession itself tells that it was.
        if owner?.task?.state == .canceling { phase = .idle } else { answer(result) }
      case .idle, .waiting, .answered: break
      }
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
    readers = source.readers
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

  /// Takes the result in; without a task it is answered at once.
  private func arrive(_ result: Result<LoadedResource, URLError>, of reading: Reading) {
    let task: URLSessionTask? = lock.withLock {
      guard case .reading(let current) = phase, current === reading else { return nil }
      guard let task = owner?.task else {
        answer(result)
        return nil
      }
      phase = .arriving(result, wasStopped: false)
      return task
    }
    if let task { hold(task) }
  }

  private func arriveAgain(_ result: Result<LoadedResource, URLError>) {
    guard let task = owner?.task else { return }
    phase = .arriving(result, wasStopped: false)
    readers?.run { [self] in hold(task) }
  }

  /// Suspends the task; without the lock, for which the task's queue may be waiting.
  private func hold(_ task: URLSessionTask) {
    task.suspend()
    let isInDoubt = lock.withLock {
      guard case .arriving(let result, let wasStopped) = phase else { return false }
      phase = wasStopped ? .waiting(result) : .held(result)
      return wasStopped
    }
    if isInDoubt { task.resume() }
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
