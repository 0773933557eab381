import Posix

/// A file of passwords for encrypted archive entries, one in each line (`-o archive_password_file=FILE`).
struct PasswordFile {
  private let path: [UInt8]

  init(_ path: [UInt8]) { self.path = path }

  func passwords() throws(Failure) -> [[UInt8]] {
    let text = try Failure.naming("archive_password_file \(path.shown)") { () throws(Errno) in
      try Descriptor.open(path, [.read]).readToEnd()
    }
    let passwords = text.split(separator: UInt8(ascii: "\n")).map(\.withoutReturn)
    let isValid = passwords.allSatisfy { !$0.isEmpty && !$0.contains(0) }
    if passwords.isEmpty || !isValid {
      throw .failed("archive_password_file \(path.shown): one password in each line is expected")
    }
    return passwords
  }
}
