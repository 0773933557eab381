import Posix
import TestSupport
import Testing

/// Inputs of one repeated token, at which a careless parser takes quadratic time.
@Suite struct MountTableWorstCaseTests {
  @Test(
    "lines of the mount table",
    arguments: ["", "36 35 0:45 / ", "36 35 0:45 / / rw ", "36 35 0:45 / / rw - fuse x "])
  func mountTable(start: String) throws {
    for token in [
      " ", "\\", "\\040", "\\777", "\\08", "-", " - ", ":", ",", "user_id=1,", "/", "a ", "9", "\0", "fuse",
    ] {
      try LinearTime.check(repeating: token, after: start) { _ = MountTableEntry(line: $0[...]) }
      try LinearTime.check(
        repeating: token, after: start, before: " 4:5 / / rw - fuse.x y user_id=99999999999 "
      ) {
        _ = MountTableEntry(line: $0[...])
      }
    }
  }

  @Test("numbers in the mount table that no type holds")
  func numbers() {
    for number in ["99999999999999999999", "-1", "+1", "", "x", "4294967296"] {
      let line = "\(number) 35 \(number):\(number) / /p rw - fuse.bundlefs x rw,user_id=\(number)"
      let entry = MountTableEntry(line: Array(line.utf8)[...])
      #expect(entry == nil || entry?.mountPoint == Array("/p".utf8) || number.isEmpty)
    }
  }
}
