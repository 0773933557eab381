import Glibc
import Posix

/// Writes a byte to each page of new memory, which is free again at the end of the process.
func useMemory(megabytes: Int) throws(Failure) {
  let (size, overflow) = megabytes.multipliedReportingOverflow(by: 1 << 20)
  guard !overflow,
    let base = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
    base != MAP_FAILED
  else { throw Failure("no memory of \(megabytes) MiB") }
  for offset in stride(from: 0, to: size, by: 4096) {
    base.storeBytes(of: 1, toByteOffset: offset, as: UInt8.self)
  }
}
