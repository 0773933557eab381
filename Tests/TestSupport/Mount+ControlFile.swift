/// The control file under its default name.
extension Mount {
  /// The path of the control file.
  public var controlFile: ByteString { point / ".routes" }

  /// Writes to the control file with one `pwrite(2)`.
  public func writeControl(_ text: String) throws {
    // Without O_CREAT and O_TRUNC, so that the file sees this write alone.
    try controlFile.overwrite([UInt8](text.utf8), at: 0)
  }
}
