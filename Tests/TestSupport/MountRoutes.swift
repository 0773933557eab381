/// The control file of a mount, which has its usual name.
extension Mount {
  /// Its path.
  public var routes: ByteString { point / ".routes" }

  /// Writes to it, in one write.
  public func say(_ text: String) throws {
    // Neither made nor truncated: the text goes in by a single write.
    try routes.overwrite([UInt8](text.utf8), at: 0)
  }
}
