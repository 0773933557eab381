import CFuse

/// Whoever waits in poll(2) for an open file.
public final class PollHandle: @unchecked Sendable {
  // libfuse's handle is read only.
  private let handle: OpaquePointer

  /// The open file's number, which no other open file of the mount gets.
  public let file: UInt64

  init(_ handle: OpaquePointer) {
    self.handle = handle
    file = bundlefs_poll_file(handle)
  }

  deinit { fuse_pollhandle_destroy(handle) }

  /// Has whoever waits ask again. That nobody does any more is no error.
  public func wake() { fuse_lowlevel_notify_poll(handle) }
}
