import CFuse

/// A pending poll(2) of an open file (`fuse_pollhandle`).
public final class PollHandle: @unchecked Sendable {
  // libfuse does not modify the handle.
  private let handle: OpaquePointer

  /// The kernel's handle of the open file, unique in the mount.
  public let file: UInt64

  init(_ handle: OpaquePointer) {
    self.handle = handle
    file = bundlefs_poll_file(handle)
  }

  deinit { fuse_pollhandle_destroy(handle) }

  /// Makes the kernel poll again (`FUSE_NOTIFY_POLL`); does nothing if no process polls any more.
  public func wake() { fuse_lowlevel_notify_poll(handle) }
}
