#if Networking
import Foundation
import Posix

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// One load of a ``ResourceURLProtocol``, from its start until the client has the result.
///
/// A thread of the source's ``LoaderPool`` reads the resource. The client must be called on the queue on which
/// URLSession starts and stops its loads, because only that queue may access the session's list of tasks. No API
/// leads to that queue, but suspending a task makes URLSession stop its load there: so the load suspends its task
/// and calls the client from the `stop` that follows.
///
/// The task then stays suspended. Otherwise its owner, by suspending and resuming it, could cause a start between
/// the callbacks and their processing, and starting a finished task crashes the process.
///
/// A `stop` that arrives before the load's own `suspend` has returned may be due to the owner's. The load then
/// resumes the task and suspends it again after the next start.
///
/// If the protocol has no task, because it is not driven by URLSession, the reading thread calls the client.
final class ResourceLoad: @unchecked Sendable {
  /// A job on the loader pool, which can be cancelled.
  private final class ReadJob: Sendable {
    private let cancelled = Locked(false)
    var isCancelled: Bool { cancelled.withLock { $0 } }
    func cancel() { cancelled.withLock { $0 = true } }
  }

  private enum Phase {
    /// Not started, or stopped.
    case idle
    case reading(ReadJob)
    /// The load is suspending the task. `wasStopped` records a stop in the meantime.
    case suspending(Result<LoadedResource, URLError>, wasStopped: Bool)
    /// The load has suspended the task; the client is called from the stop that follows.
    case suspended(Result<LoadedResource, URLError>)
    /// Suspends again after the next start, which follows from a `resume` of the load or of the task's owner.
    case awaitingRestart(Result<LoadedResource, URLError>)
    case finished
  }

  /// Guards the phase. Held during calls to the client, so that none follows a stop; recursive, because the client
  /// may stop the load from within.
  private let lock = NSRecursiveLock()
  private var phase = Phase.idle
  private weak var owner: ResourceURLProtocol?
  private var loaders: LoaderPool?

  func start(for owner: ResourceURLProtocol) {
    lock.withLock {
      self.owner = owner
      switch phase {
      case .idle: read(owner.request)
      case .awaitingRestart(let result): suspendAgain(result)
      case .reading, .suspending, .suspended, .finished: break
      }
    }
  }

  /// Cancels reading, or delivers a result that awaits this stop.
  func stop() {
    lock.withLock {
      switch phase {
      case .reading(let job):
        job.cancel()
        phase = .idle
      case .suspending(let result, _): phase = .suspending(result, wasStopped: true)
      case .suspended(let result):
        // URLSession itself reports the cancellation of a task.
        if owner?.task?.state == .canceling { phase = .idle } else { deliver(result) }
      case .idle, .awaitingRestart, .finished: break
      }
    }
  }

  private func read(_ request: URLRequest) {
    guard let url = request.url else { return deliver(.failure(URLError(.badURL))) }
    if let task = owner?.task, !(task is URLSessionDataTask) {
      // On Linux URLSession takes a download's temporary file only from its own protocols.
      return deliver(.failure(URLError(.unsupportedURL, url, "only data tasks can load resources")))
    }
    guard let source = ResourceURLProtocol.source(of: url) else {
      return deliver(.failure(URLError(.unsupportedURL, url, "the scheme is not registered")))
    }
    let job = ReadJob()
    phase = .reading(job)
    loaders = source.loaders
    let part = Self.part(of: request)
    source.loaders.run { [self] in
      if job.isCancelled { return }
      do throws(URLError) {
        let resource = try source.load(url, part: part, shouldContinue: { !job.isCancelled })
        if let resource { complete(job, .success(resource)) }
      } catch {
        complete(job, .failure(error))
      }
    }
  }

  private static func part(of request: URLRequest) -> ResourceSource.Part {
    if request.httpMethod == "HEAD" { return .description }
    guard request.httpMethod == "GET", let range = request.value(forHTTPHeaderField: "Range") else {
      return .all
    }
    return RequestedRange(range).map { .range($0) } ?? .all
  }

  /// Suspends the task to deliver the result; without a task delivers it at once.
  private func complete(_ job: ReadJob, _ result: Result<LoadedResource, URLError>) {
    let task: URLSessionTask? = lock.withLock {
      guard case .reading(let current) = phase, current === job else { return nil }
      guard let task = owner?.task else {
        deliver(result)
        return nil
      }
      phase = .suspending(result, wasStopped: false)
      return task
    }
    if let task { suspend(task) }
  }

  private func suspendAgain(_ result: Result<LoadedResource, URLError>) {
    guard let task = owner?.task else { return }
    phase = .suspending(result, wasStopped: false)
    loaders?.run { [self] in suspend(task) }
  }

  /// Runs without the lock, because the task's queue may be waiting for it.
  private func suspend(_ task: URLSessionTask) {
    task.suspend()
    let isAmbiguous = lock.withLock {
      guard case .suspending(let result, let wasStopped) = phase else { return false }
      phase = wasStopped ? .awaitingRestart(result) : .suspended(result)
      return wasStopped
    }
    if isAmbiguous { task.resume() }
  }

  private func deliver(_ result: Result<LoadedResource, URLError>) {
    phase = .finished
    guard let owner, let client = owner.client else { return }
    switch result {
    case .success(let resource):
      client.urlProtocol(owner, didReceive: resource.response, cacheStoragePolicy: .notAllowed)
      // In one call: a completion handler receives only the data of the last one.
      if !resource.data.isEmpty { client.urlProtocol(owner, didLoad: resource.data) }
      client.urlProtocolDidFinishLoading(owner)
    case .failure(let error):
      client.urlProtocol(owner, didFailWithError: error)
    }
  }
}
#endif
