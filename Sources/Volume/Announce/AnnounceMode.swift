/// Whether changes in the layers are announced to programs that watch the mount.
public enum AnnounceMode: Sendable, Equatable {
  case on
  case off
  /// It was requested, but the other options rule it out; gives the reason.
  case unavailable(String)
}
