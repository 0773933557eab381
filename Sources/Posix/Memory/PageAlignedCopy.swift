import CLibrary

extension [UInt8] {
  /// Calls the body with a copy that begins with a page of memory and, if it fits, lies in one: the kernel reads all that
  /// such a page has of a write, or nothing. It may end a part of the write where another page begins.
  public func withPageAlignedCopy<Result>(
    _ body: (UnsafeRawBufferPointer) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    let copy = UnsafeMutableRawBufferPointer.allocate(
      byteCount: Swift.max(count, 1), alignment: Int(getpagesize()))
    defer { copy.deallocate() }
    copy.copyBytes(from: self)
    return try body(UnsafeRawBufferPointer(rebasing: copy[..<count]))
  }
}
