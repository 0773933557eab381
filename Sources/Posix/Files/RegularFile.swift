extension Descriptor {
  /// Opens an entry of this directory that must be a regular file; nothing is done to any other kind of file.
  /// - Throws: ELOOP for a symbolic link; EOPNOTSUPP for another kind.
  public func openRegularFile(_ name: CName, _ flags: OpenFlags) throws(Errno) -> Descriptor {
    // Opening a device can do things, and opening a fifo waits. What is there next is judged once more.
    let kind = try attributes(of: name).kind
    if kind == .symbolicLink { throw .tooManySymbolicLinkLevels }
    guard kind == .regular else { throw .notSupported }
    let file = try open(name, flags.union([.noFollow, .nonBlocking, .noControllingTerminal]))
    guard try file.attributes().isRegular else { throw .notSupported }
    return file
  }
}
