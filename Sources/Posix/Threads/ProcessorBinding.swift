import CLinux
import Synchronization

/// Keeps the threads that answer a program on one processor while another thread works ahead of it on the other one, or
/// only keeps that one busy.
///
/// The kernel wakes a program that gets its reply on an idle processor, if there is one. That processor has halted, and in
/// a guest it takes 15 µs until it runs; the same again passes until the answering thread has woken on the processor that
/// the program has left. Where the other processor is busy, and the answering threads are bound to this one, program
/// and threads take turns on it for the price of a switch.
///
/// For two processors only: with more of them, another one is idle all the same.
public final class ProcessorSplit: Sendable {
  private let processor = Atomic<Int32>(-1)
  /// That of the last split of the process that has begun and not ended; a hint.
  private static let current = Atomic<Int32>(-1)
  private let isPossible = processorCount == 2
  /// How long a thread that works ahead waits for more work before it sleeps, in nanoseconds.
  private static let patience: UInt64 = 300_000

  /// No thread is bound.
  public init() {}

  /// The processor of the answering threads; nil while they may run anywhere.
  public var answering: Int32? {
    let processor = processor.load(ordering: .relaxed)
    return processor < 0 ? nil : processor
  }

  /// Binds the answering threads to the processor of a program.
  /// - Parameters:
  ///   - program: the program's thread, by its number here; 0 for one in another PID namespace.
  ///   - fallback: the processor that is taken if the program's is not found.
  public func begin(beside program: Int32, or fallback: Int32) {
    guard isPossible else { return }
    let found = program > 0 ? linux_processor_of(program) : -1
    let chosen = found >= 0 ? found : fallback
    processor.store(chosen, ordering: .relaxed)
    Self.current.store(chosen, ordering: .relaxed)
  }

  /// Lets the answering threads run anywhere.
  public func end() {
    if processor.exchange(-1, ordering: .relaxed) >= 0 { Self.current.store(-1, ordering: .relaxed) }
  }

  /// Moves the calling thread to another processor if it runs on that of the answering threads. It may run anywhere
  /// afterwards, and stays where it is as long as the scheduler sees no reason.
  public static func leaveAnswering() {
    let processor = current.load(ordering: .relaxed)
    guard processor >= 0, processor == Thread.currentProcessor else { return }
    var binding = ProcessorBinding()
    binding.avoid(processor)
    binding.avoid(nil)
  }

  /// Waits until there is more work, for 300 µs at most and without sleeping: the calling thread keeps its processor busy
  /// meanwhile, so that programs are not woken on it.
  /// - Returns: false if there was none, where other threads need the processor, and while no thread is bound.
  public func spin(until hasWork: () -> Bool) -> Bool {
    if answering == nil { return false }
    let (start, preemptions) = (TimeSpec.monotonicNanoseconds, Thread.preemptions)
    while !hasWork() {
      if TimeSpec.monotonicNanoseconds - start > Self.patience { return false }
    }
    return Thread.preemptions == preemptions
  }
}

/// The processors on which one thread may run. Each change is a system call.
public struct ProcessorBinding {
  private var processor: Int32?

  /// For a thread that may run anywhere.
  public init() {}

  /// Whether the thread may not run anywhere.
  public var isBound: Bool { processor != nil }

  /// Binds the calling thread to a processor; nil lets it run anywhere.
  public mutating func bind(to processor: Int32?) { set(processor, isExcluded: false) }

  /// Keeps the calling thread off a processor; nil lets it run anywhere.
  public mutating func avoid(_ processor: Int32?) { set(processor, isExcluded: true) }

  private mutating func set(_ processor: Int32?, isExcluded: Bool) {
    if processor == self.processor { return }
    self.processor = processor
    linux_bind(processor ?? -1, isExcluded)
  }
}

extension Thread {
  /// The processor on which the calling thread runs.
  public static var currentProcessor: Int32 { linux_current_processor() }

  /// How often the kernel has let other threads run although the calling one had not finished.
  public static var preemptions: Int { linux_preemptions() }
}
