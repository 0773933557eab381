import Glibc
import Posix

/// Makes synthetic files for measurements.
enum Trees {
  /// The first byte of each 4 KiB block of a large file.
  static let firstByte: UInt8 = 0x62

  /// Makes empty files 000000, 000001, …, evenly distributed over new folders d00000, d00001, ….
  static func makeFiles(_ root: String, folders: Int, files: Int) throws(Failure) {
    var number = 0
    for folder in 0..<folders {
      let path = "\(root)/d\(padded(folder, 5))"
      guard mkdir(path, 0o755) == 0 else { throw Failure(refused: path) }
      let descriptor = open(path, O_RDONLY | O_DIRECTORY)
      guard descriptor >= 0 else { throw Failure(refused: path) }
      defer { close(descriptor) }
      while number < files * (folder + 1) / folders {
        let file = openat(descriptor, padded(number, 6), O_WRONLY | O_CREAT | O_EXCL, 0o644)
        guard file >= 0, close(file) == 0 else { throw Failure(refused: "\(path)/\(number)") }
        number += 1
      }
    }
  }

  /// Makes a file of incompressible pseudo-random bytes (xorshift64).
  static func makeLarge(_ path: String, megabytes: Int) throws(Failure) {
    let file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
    guard file >= 0 else { throw Failure(refused: path) }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 1 << 20)
    var state: UInt64 = 88_172_645_463_325_252
    for _ in 0..<megabytes {
      for index in bytes.indices {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        bytes[index] = UInt8(truncatingIfNeeded: state)
      }
      for offset in stride(from: 0, to: bytes.count, by: 4096) { bytes[offset] = firstByte }
      guard write(file, bytes, bytes.count) == bytes.count else { throw Failure(refused: path) }
    }
  }

  private static func padded(_ number: Int, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
}
