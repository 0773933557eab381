import Posix

/// A failure that ends the test.
public struct TestFailure: Error, CustomStringConvertible, Sendable {
  /// The message.
  public let description: String

  /// Creates a failure with this message.
  public init(_ description: String) { self.description = description }
}

/// A failed system call and the path it was applied to.
public struct DiskError: Error, CustomStringConvertible, Sendable {
  /// The call's name.
  public let call: String
  /// The path.
  public let path: ByteString
  /// The error.
  public let errno: Errno

  /// Creates the error.
  public init(_ call: String, _ path: ByteString, _ errno: Errno) {
    self.call = call
    self.path = path
    self.errno = errno
  }

  /// `call(path): message`.
  public var description: String { "\(call)(\(path)): \(errno.description)" }
}

/// The `errno` value that the body throws; nil if it succeeds. Other errors are rethrown.
public func errorNumber(of body: () throws -> Void) throws -> Errno? {
  do {
    try body()
    return nil
  } catch let error as DiskError {
    return error.errno
  } catch let error as Errno {
    return error
  }
}

/// Polls the condition until it holds or the time is over.
/// - Returns: whether it held.
public func eventually(within seconds: Double, _ condition: () throws -> Bool) rethrows -> Bool {
  let deadline = Clock.now + seconds
  var pause = 0.001
  while true {
    if try condition() { return true }
    if Clock.now >= deadline { return false }
    Clock.sleep(pause)
    pause = min(pause * 1.5, 0.05)
  }
}
