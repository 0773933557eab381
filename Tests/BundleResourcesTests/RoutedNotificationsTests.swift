import Posix
import Routing
import TestSupport
import Testing

@testable import BundleResources

/// What the sequence of notifications does for a reader that is slower than the mount.
@Suite struct RoutedNotificationsTests {
  private static func notification(_ sequence: Int) throws -> RoutedNotification {
    let line = #"{"sequence":\#(sequence),"notification":"A","url":"x:\#(sequence)","userInfo":{}}"#
    let result = try #require(ResultLine(Array(line.utf8)[...]))
    return try #require(RoutedNotification(result))
  }

  private static func add(_ numbers: ClosedRange<Int>, to input: RoutedNotifications.Input) throws {
    for number in numbers { input.add(try notification(number)) }
  }

  /// The sequence numbers that are read until the end, and the error that ends them.
  private static func read(_ notifications: RoutedNotifications) async -> ([UInt64], MountError?) {
    var read: [UInt64] = []
    do throws(MountError) {
      for try await notification in notifications { read.append(notification.sequence ?? 0) }
    } catch { return (read, error) }
    return (read, nil)
  }

  @Test("what a slow reader has not read is kept up to a limit; then the sequence says where to continue")
  func slow() async throws {
    let size = RoutedNotifications.bufferSize
    let ends = Counter()
    let (notifications, input) = RoutedNotifications.make { ends.add(1) }
    try Self.add(1...size, to: input)
    #expect(ends.count == 0)
    try Self.add(size + 1...size + 3, to: input)
    #expect(ends.count == 1)
    let (read, error) = await Self.read(notifications)
    #expect(read == (1...UInt64(size)).map { $0 })
    #expect(error == .fellBehind(sequence: UInt64(size)))
    // The error is thrown once.
    #expect(await Self.read(notifications) == ([], nil))
  }

  @Test("a reader that keeps up reads any number")
  func fast() async throws {
    let (notifications, input) = RoutedNotifications.make {}
    var iterator = notifications.makeAsyncIterator()
    for number in 1...3 * RoutedNotifications.bufferSize {
      try Self.add(number...number, to: input)
      #expect(try await iterator.next()?.sequence == UInt64(number))
    }
    input.end(.missedResults(5...6))
    await #expect(throws: MountError.missedResults(5...6)) { try await iterator.next() }
    #expect(try await iterator.next() == nil)
  }
}
