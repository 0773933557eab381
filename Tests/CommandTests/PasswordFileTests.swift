import TestSupport
import Testing

@testable import bundlefs

@Suite struct PasswordFileTests {
  @Test("each line of a password file is a password")
  func lines() throws {
    let folder = try TemporaryFolder()
    let file = folder / "passwords"
    try file.write(Array("one\r\ntwo words \n\nthree".utf8))
    #expect(try PasswordFile(file.bytes).passwords().map(\.shown) == ["one", "two words ", "three"])
  }

  @Test("a password file that is missing, empty or has a NUL is an error that names it")
  func invalid() throws {
    let folder = try TemporaryFolder()
    let file = folder / "passwords"
    for content in [nil, "", "\n\n", "a\0b"] as [String?] {
      if let content { try file.write(Array(content.utf8)) }
      let failure = try #require(throws: Failure.self) { try PasswordFile(file.bytes).passwords() }
      #expect(failure.status == 1 && failure.message.contains("archive_password_file \(file)"))
    }
  }
}
