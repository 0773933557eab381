import Glibc

/// The last line that a program printed to a file, in which what it says of a failure stands.
public enum LastLine {
  /// Reads it; of long output the first 4 KiB count.
  /// - Parameter file: an open file's number.
  /// - Returns: nil if nothing was printed.
  public static func read(from file: CInt) -> Substring? {
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = max(0, pread(file, &bytes, bytes.count, 0))
    return String(decoding: bytes[..<count], as: UTF8.self).split(separator: "\n").last
  }
}
