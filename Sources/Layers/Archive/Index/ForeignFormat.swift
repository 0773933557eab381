import Posix

/// Archives and images of kinds that no layer can be, recognized so that a message can name them.
enum ForeignFormat {
  private struct Kind {
    let name: String
    let magic: [UInt8]
    var offset: UInt64 = 0
  }

  private static let kinds = [
    Kind(name: "a UDF image", magic: Array("BEA01".utf8), offset: 32_769),
    Kind(name: "a SquashFS image", magic: Array("hsqs".utf8)),
    Kind(name: "an RPM package", magic: [0xED, 0xAB, 0xEE, 0xDB]),
    Kind(name: "an ARJ archive", magic: [0x60, 0xEA]),
  ]

  /// - Returns: why the file cannot be a layer; nil if it is of no kind that is known.
  static func fault(of source: ArchiveSource) -> ArchiveError? {
    for kind in kinds where has(kind, source) {
      return .unsupported("\(kind.name), which cannot be a layer; archives as zip, tar and 7z can")
    }
    return nil
  }

  private static func has(_ kind: Kind, _ source: ArchiveSource) -> Bool {
    let isFound = try? withUnsafeTemporaryBytes(kind.magic.count) { buffer throws(Errno) in
      try source.read(into: buffer, at: kind.offset)
      return buffer.elementsEqual(kind.magic)
    }
    return isFound == true
  }
}
