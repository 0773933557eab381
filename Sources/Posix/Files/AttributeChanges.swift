/// The attributes that SETATTR sets; nil for those that stay.
public struct AttributeChanges: Sendable, Equatable {
  /// A time of utimensat(2).
  public enum Time: Sendable, Equatable {
    /// `UTIME_NOW`.
    case now
    case at(TimeSpec)
  }

  /// The permission bits.
  public var permissions: UInt32?
  /// `st_uid`.
  public var owner: UInt32?
  /// `st_gid`.
  public var group: UInt32?
  /// `st_size` in bytes.
  public var size: UInt64?
  /// `st_atim`.
  public var accessed: Time?
  /// `st_mtim`.
  public var modified: Time?
  /// Whether a new size or owner takes the set-user-ID and set-group-ID bits away, as for callers without
  /// `CAP_FSETID`.
  public var clearsPrivileges = false

  /// Whether chown(2) has set the owner and group that the entry has, which clears bits, too.
  public var renewsOwner = false

  /// Whether chown(2) sets them, also to what they are.
  public var setsOwner: Bool { owner != nil || group != nil || renewsOwner }

  /// No change.
  public init() {}
}
