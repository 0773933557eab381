import Glibc
import Posix

/// Makes what is measured where copying something real would not do.
enum Trees {
  /// What each 4 KiB of a large file begin with.
  static let firstByte: UInt8 = 0x62

  /// Makes empty files 000000, 000001, … below a folder, spread evenly over folders of its own, d00000 and so on.
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

  /// Makes a file that no file system and no disk can shorten: each of its bytes is a different one's successor.
  static func makeLarge(_ path: String, megabytes: Int) throws(Failure) {
    let file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
    guard file >= 0 else { throw Failure(refused: path) }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 1 << 20)
    var state: UInt64 = 88_172_645_463_325_252
    for _ in 0..<megabytes {
      for place in bytes.indices {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        bytes[place] = UInt8(truncatingIfNeeded: state)
      }
      for place in stride(from: 0, to: bytes.count, by: 4096) { bytes[place] = firstByte }
      guard write(file, bytes, bytes.count) == bytes.count else { throw Failure(refused: path) }
    }
  }

  private static func padded(_ number: Int, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
}
