/// Which extended attributes a mount serves.
public enum ExtendedAttributeMode: String, Sendable {
  /// Those of the layers' files. The mount's own can be read by name, but are not listed: programs that copy attributes
  /// would write them to the copy, where they would be wrong.
  case on
  /// None: ENOSYS makes the kernel stop asking.
  case off
  /// As `on`, and the mount's own are listed.
  case listed
  /// Those of the layers' files alone.
  case layers
}
