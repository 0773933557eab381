import Posix

/// The control file under its default name.
extension Mount {
  /// The path of the control file.
  public var controlFile: ByteString { point / ".routes" }

  /// Writes to the control file with one `pwrite(2)`, which the kernel does not cut within a line.
  public func writeControl(_ text: String) throws {
    // Without O_CREAT and O_TRUNC, so that the file sees this write alone.
    let file = try Descriptor.open(controlFile.bytes, [.write])
    let count = try file.writeOnce(aligned: Array(text.utf8), at: 0)
    if count != text.utf8.count { throw TestFailure("\(count) bytes of \(text) were written") }
  }
}
