import Glibc
import Posix

/// The program under test.
public enum Binary {
  /// The build that `BUNDLEFS_BINARY` names, or else the one beside the running tests.
  public static func underTest(file: String = #filePath) throws -> ByteString {
    if let named = variable("BUNDLEFS_BINARY") {
      guard isProgram(ByteString(named)) else {
        throw TestFailure("BUNDLEFS_BINARY=\(named) is not an executable file")
      }
      return ByteString(named)
    }
    return try besideTheTests("bundlefs", file: file)
  }

  /// A program of the package, from the same build as the running tests.
  public static func besideTheTests(_ name: ByteString, file: String = #filePath) throws -> ByteString {
    let candidates = try besideTests(name) + inPackage(name, file)
    guard let found = candidates.first(where: isProgram) else {
      throw TestFailure("no executable at any of \(candidates); build the package first")
    }
    return found
  }

  /// The value of an environment variable; nil if unset or empty.
  public static func variable(_ name: String) -> String? {
    guard let value = getenv(name), value[0] != 0 else { return nil }
    return String(cString: value)
  }

  private static func besideTests(_ name: ByteString) throws -> [ByteString] {
    // The test bundle's executable lies beside the products; a helper that loads the bundle does not.
    [try ByteString("/proc/self/exe").linkTarget().parent / name]
  }

  private static func inPackage(_ name: ByteString, _ file: String) -> [ByteString] {
    let package = ByteString(file).parent.parent.parent
    return [package / ".build/debug" / name, package / ".build/static/release" / name]
  }

  private static func isProgram(_ path: ByteString) -> Bool {
    guard let status = try? path.followedStatus() else { return false }
    return status.kind == .regular && status.permissions & 0o111 != 0
  }
}
