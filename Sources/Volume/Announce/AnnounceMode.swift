/// Whether programs that watch the mount are told of what changes beneath it.
public enum AnnounceMode: Sendable, Equatable {
  case on
  case off
  /// Though it was asked for, it cannot be, for this reason.
  case unavailable(String)
}
