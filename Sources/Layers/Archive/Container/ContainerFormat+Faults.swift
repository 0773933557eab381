import Posix

extension ContainerFormat {
  /// What keeps an archive from being read though it is whole: it is one of several files, or all of it is encrypted.
  /// - Returns: the reason for users; nil if there is none.
  func fault(of source: ArchiveSource) throws(ArchiveError) -> ArchiveError? {
    guard [.rar, .rar5, .cab].contains(kind) else { return nil }
    do throws(Errno) {
      return try withUnsafeTemporaryBytes(Int(min(64, source.size))) { buffer throws(Errno) in
        try source.read(into: buffer, at: 0)
        return fault(in: UnsafeRawBufferPointer(buffer))
      }
    } catch { throw error == .ioError ? .changing : .unreadable(error) }
  }

  private func fault(in head: UnsafeRawBufferPointer) -> ArchiveError? {
    if kind == .cab {
      // The flags say whether a cabinet precedes or follows.
      let isPart = head.count >= 32 && head.number(at: 30, as: UInt16.self) & 3 != 0
      return isPart ? Self.volume("a cabinet") : nil
    }
    return switch RARHeader.fault(in: head, kind) {
    case .volume: Self.volume("a RAR archive")
    case .encrypted: Self.encrypted(kind)
    case nil: nil
    }
  }

  private static func volume(_ name: String) -> ArchiveError {
    .unsupported("one part of \(name) in several files, which cannot be read; pack it anew as one file")
  }

  static func encrypted(_ kind: Kind) -> ArchiveError {
    let name = [.rar, .rar5].contains(kind) ? "RAR" : kind.rawValue
    return .unsupported(
      "encrypted \(name) archives cannot be read; unpack it, or pack it anew as an encrypted zip archive")
  }
}
