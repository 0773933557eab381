import Posix

/// Why a test cannot go on, in words.
public struct TestFailure: Error, CustomStringConvertible, Sendable {
  /// The words.
  public let description: String

  /// Fails with these words.
  public init(_ description: String) { self.description = description }
}

/// A system call that failed, and on what.
public struct DiskError: Error, CustomStringConvertible, Sendable {
  /// The call's name.
  public let call: String
  /// What it was applied to.
  public let path: ByteString
  /// The error.
  public let errno: Errno

  /// The failure of that call.
  public init(_ call: String, _ path: ByteString, _ errno: Errno) {
    self.call = call
    self.path = path
    self.errno = errno
  }

  /// As `call(path): words`.
  public var description: String { "\(call)(\(path)): \(errno.description)" }
}

/// The error number with which the body fails; nil if it succeeds.
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

/// Asks until it is so, at most that long.
/// - Returns: whether it became so.
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
