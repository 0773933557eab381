/// The main header of a RAR archive.
enum RARHeader {
  /// One byte or two for the version follow.
  static let signature: [UInt8] = Array("Rar!\u{1A}\u{7}".utf8)

  enum Fault { case volume, encrypted }

  /// - Parameter head: the archive's first bytes.
  static func fault(in head: UnsafeRawBufferPointer, _ kind: ContainerFormat.Kind) -> Fault? {
    kind == .rar5 ? faultOfVersion5(head) : faultOfVersion4(head)
  }

  private static func faultOfVersion4(_ head: UnsafeRawBufferPointer) -> Fault? {
    // After the signature: checksum, type, flags.
    guard head.count >= 12, head[9] == 0x73 else { return nil }
    let flags = head.number(at: 10, as: UInt16.self)
    if flags & 0x80 != 0 { return .encrypted }
    return flags & 1 != 0 ? .volume : nil
  }

  private static func faultOfVersion5(_ head: UnsafeRawBufferPointer) -> Fault? {
    // After the signature and a checksum: numbers of variable length.
    var rest = head.dropFirst(12)
    guard takeNumber(&rest) != nil, let type = takeNumber(&rest), let flags = takeNumber(&rest) else {
      return nil
    }
    if type == 4 { return .encrypted }
    if type != 1 || flags & 1 != 0 && takeNumber(&rest) == nil { return nil }
    return takeNumber(&rest).flatMap { $0 & 1 != 0 ? .volume : nil }
  }

  /// A number in groups of seven bits, the lowest first. All but the last group have the eighth bit.
  private static func takeNumber(_ bytes: inout Slice<UnsafeRawBufferPointer>) -> UInt64? {
    var (number, shift): (UInt64, UInt64) = (0, 0)
    while shift < 63, let byte = bytes.popFirst() {
      number |= UInt64(byte & 0x7F) << shift
      if byte & 0x80 == 0 { return number }
      shift += 7
    }
    return nil
  }
}
