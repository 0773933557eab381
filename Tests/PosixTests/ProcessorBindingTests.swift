import CLinux
import Glibc
import TestSupport
import Testing

@testable import Posix

/// Which processors threads may run on.
@Suite struct ProcessorBindingTests {
  /// Runs the body on a thread of its own.
  private func onThread(_ body: @escaping @Sendable () -> Void) throws {
    try Thread(name: "binding") { body() }.join()
  }

  @Test("a bound thread runs on its processor, one that avoids it does not, and both are released")
  func bind() throws {
    let all = processorCount
    try #require(all > 1)
    try onThread {
      let processor = linux_current_processor()
      var binding = ProcessorBinding()
      binding.bind(to: processor)
      #expect(binding.isBound && linux_usable_processors() == 1 && linux_current_processor() == processor)
      binding.bind(to: nil)
      #expect(!binding.isBound && Int(linux_usable_processors()) == all)
      binding.avoid(processor)
      #expect(Int(linux_usable_processors()) == all - 1 && linux_current_processor() != processor)
      binding.avoid(nil)
      #expect(Int(linux_usable_processors()) == all)
    }
  }

  @Test("a thread that a bound one starts is not bound")
  func inherited() throws {
    let all = processorCount
    try onThread {
      var binding = ProcessorBinding()
      binding.bind(to: linux_current_processor())
      let count = Locked<CInt>(0)
      let thread = try? Thread(name: "inner") { count.withLock { $0 = linux_usable_processors() } }
      thread?.join()
      #expect(Int(count.withLock { $0 }) == all)
    }
  }

  @Test("a thread's processor is found by its number")
  func processor() throws {
    try onThread {
      for processor in 0..<Int32(processorCount) {
        linux_bind(processor, false)
        guard linux_usable_processors() == 1 else { continue }
        #expect(linux_processor_of(Thread.currentID) == linux_current_processor())
      }
    }
    #expect(linux_processor_of(Int32.max) == -1)
  }

  @Test("threads that answer are bound to the program's processor", .enabled(if: processorCount == 2))
  func split() throws {
    let split = ProcessorSplit()
    #expect(split.answering == nil)
    try onThread {
      for processor in 0..<Int32(2) {
        linux_bind(processor, false)
        let here = linux_current_processor()
        split.begin(beside: Thread.currentID, or: 7)
        #expect(split.answering == here)
        split.end()
        #expect(split.answering == nil)
        // They cannot be found.
        split.begin(beside: 0, or: 7)
        #expect(split.answering == 7)
        split.begin(beside: Int32.max, or: 8)
        #expect(split.answering == 8)
        split.end()
      }
    }
  }

  @Test(
    "a thread with other work leaves the processor of those that answer", .enabled(if: processorCount == 2))
  func leaves() throws {
    let split = ProcessorSplit()
    try onThread {
      for processor in 0..<Int32(2) {
        linux_bind(processor, false)
        split.begin(beside: 0, or: processor)
        linux_bind(-1, false)
        // Another suite may begin and end a split meanwhile; the scheduler may move the thread at any time.
        let hasLeft = eventually(within: 60) {
          split.begin(beside: 0, or: processor)
          ProcessorSplit.leaveAnswering()
          return Thread.currentProcessor != processor
        }
        #expect(hasLeft && linux_usable_processors() == 2, "it may run anywhere afterwards")
        split.end()
      }
    }
  }

  @Test(
    "a thread that works ahead waits for more work while others are bound", .enabled(if: processorCount == 2))
  func spin() throws {
    let (split, asked) = (ProcessorSplit(), Locked(0))
    let hasWork = {
      asked.withLock { asked in
        asked += 1
        return asked == 3
      }
    }
    #expect(!split.spin(until: hasWork) && asked.withLock { $0 } == 0, "no thread is bound")
    split.begin(beside: 0, or: 0)
    // Other threads may need the processor at any time.
    #expect(
      eventually(within: 20) {
        asked.withLock { $0 = 0 }
        return split.spin(until: hasWork)
      })
    #expect(asked.withLock { $0 } == 3)
    #expect(!split.spin { false }, "there was none")
    split.end()
  }
}
