import CLibrary
import Posix

/// Programs that extract the 7z archive behind them. Those of zip archives are found from their end.
extension ArchiveSource {
  /// How far a program is searched: those of 7-Zip and of installers have some 100 KiB.
  private static let searchedForArchive: UInt64 = 4 << 20
  private static let window = 256 << 10

  /// The 7z archive that follows a program.
  /// - Returns: nil if there is none.
  func archiveBehindProgram() throws(ArchiveError) -> ArchiveSource? {
    do throws(Errno) {
      guard try isProgram(), let start = try firstSevenZip() else { return nil }
      // It may be an entry of a zip archive.
      do throws(ArchiveError) {
        if try CentralDirectory.find(in: self).prefixLength < start { return nil }
      } catch {}
      return try inner(at: start)
    } catch { throw error == .ioError ? .changing : .unreadable(error) }
  }

  private func inner(at start: UInt64) throws(Errno) -> ArchiveSource? {
    do throws(ArchiveError) {
      return try ArchiveSource(inside: self, at: start, size: size - start, keepsOuter: true)
    } catch {
      guard case .unreadable(let error) = error else { return nil }
      throw error
    }
  }

  /// Whether the file is a program of Windows or Linux.
  private func isProgram() throws(Errno) -> Bool {
    guard size >= 64 else { return false }
    return try withUnsafeTemporaryBytes(4) { buffer throws(Errno) in
      try read(into: buffer, at: 0)
      return buffer.starts(with: Array("MZ".utf8)) || buffer.starts(with: [0x7F] + Array("ELF".utf8))
    }
  }

  private func firstSevenZip() throws(Errno) -> UInt64? {
    let (signature, end) = (SevenZipHeader.signature, min(size, Self.searchedForArchive))
    let window = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.window, alignment: 16)
    defer { window.deallocate() }
    var start: UInt64 = 0
    while end - start >= UInt64(signature.count) {
      let part = UnsafeMutableRawBufferPointer(
        rebasing: window[..<Int(min(UInt64(window.count), end - start))])
      try read(into: part, at: start)
      for offset in UnsafeRawBufferPointer(part).offsets(of: signature) {
        let found = start + UInt64(offset)
        if try SevenZipHeader(in: self, at: found) != nil { return found }
      }
      // The signature may lie across two windows.
      start += UInt64(part.count - signature.count + 1)
    }
    return nil
  }
}

extension UnsafeRawBufferPointer {
  /// The offsets at which a sequence of bytes begins.
  fileprivate func offsets(of sequence: [UInt8]) -> [Int] {
    var (offsets, start): ([Int], Int) = ([], 0)
    while let base = baseAddress, start < count,
      let found = memchr(base + start, CInt(sequence[0]), count - start)
    {
      let offset = UnsafeRawPointer(found) - base
      if self[offset...].starts(with: sequence) { offsets.append(offset) }
      start = offset + 1
    }
    return offsets
  }
}
