import Glibc
import Layers
import Posix

/// libFuzzer's entry point. The input is an archive of any kind, which is listed and read.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  write(UnsafeRawBufferPointer(start: start, count: count))
  setTime(UnsafeRawBufferPointer(start: start, count: count))
  let cache = ContentCache(budget: 1 << 20, passwords: [Array("secret".utf8)])
  do throws(ArchiveError) {
    let layer = try ArchiveLayer(archivePath: path, index: 0, cache: cache)
    // 46 bytes is the size of a central directory record. A tar archive may be compressed.
    precondition(layer.statistics.format != "zip" || layer.statistics.entries <= count / 46)
    try? walk(LayerStack(layers: [.archive(layer)]).root(), depth: 0)
    precondition(cache.statistics.bytes <= 1 << 20 || cache.statistics.contents == 1, "over the budget")
  } catch {
    precondition(!error.message.isEmpty)
  }
  return 0
}

/// A file in memory for each process.
private let path = Array("/dev/shm/bundlefs-fuzz.\(getpid()).zip".utf8)

private func write(_ bytes: UnsafeRawBufferPointer) {
  var name = path.map { CChar(bitPattern: $0) }
  name.append(0)
  let file = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
  guard file >= 0, Glibc.write(file, bytes.baseAddress, bytes.count) == bytes.count else {
    fatalError("no room in /dev/shm")
  }
  close(file)
}

/// Sets the archive's mtime to the seconds in the last eight bytes, which a comment may hold.
private func setTime(_ bytes: UnsafeRawBufferPointer) {
  guard bytes.count >= 8 else { return }
  let seconds = bytes.loadUnaligned(fromByteOffset: bytes.count - 8, as: Int.self)
  let times = [
    timespec(tv_sec: seconds, tv_nsec: 999_999_999), timespec(tv_sec: seconds, tv_nsec: 999_999_999),
  ]
  utimensat(AT_FDCWD, path.map { CChar(bitPattern: $0) } + [0], times, 0)
}

private func walk(_ directory: MergedDirectory, depth: Int) throws(Errno) {
  let listing = try directory.list()
  for item in listing.items {
    let name = listing.name(of: item)
    precondition(!name.isEmpty && name.count <= 255 && !name.contains(0) && !name.contains(0x2F))
    precondition(name != [0x2E] && name != [0x2E, 0x2E])
    let found = try withCName(name) { name throws(Errno) in try directory.lookup(name) }
    switch found {
    case .directory(let inner, _): if depth < 64 { try walk(inner, depth: depth + 1) }
    case .file(let layer, let attributes): read(name, attributes, directory.parts(of: layer).first)
    case nil: preconditionFailure("listed, but not found")
    }
  }
}

/// Reads the start of the file and, if it is at most 4 MiB, all of it.
private func read(_ name: [UInt8], _ attributes: FileStatus, _ part: LayerDirectory?) {
  guard let part else { preconditionFailure("a file of no layer") }
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 100_000, alignment: 16)
  defer { buffer.deallocate() }
  do throws(Errno) {
    let file = try withCName(name) { name throws(Errno) in
      try part.openFile(name, identity: attributes.identity)
    }
    if attributes.kind == .symbolicLink { _ = try file.linkTarget() }
    let first = try file.read(into: buffer, at: 0)
    precondition(first == min(buffer.count, Int(clamping: attributes.size)))
    guard attributes.size <= 4 << 20 else { return }
    let all = try file.readAll()
    precondition(all.count == Int(attributes.size))
    _ = try file.read(into: buffer, at: Int64(attributes.size / 2))
  } catch {
    let expected: [Errno] = [.ioError, .permissionDenied, .notSupported, .staleFileHandle, .noMemory]
    precondition(expected.contains(error), "\(error)")
  }
}
