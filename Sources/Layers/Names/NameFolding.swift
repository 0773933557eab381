import CUTF8Proc
import Posix

/// Which spellings are one name where case does not count: those that are equal after full case folding and canonical
/// decomposition (Unicode, section 3.13, definition D145). Names that are not UTF-8 are equal only to themselves.
public enum NameFolding {
  /// nil if utf8proc is not installed.
  private static let functions: bundlefs_utf8proc? = {
    var functions = bundlefs_utf8proc()
    return bundlefs_utf8proc_load(&functions) != 0 ? functions : nil
  }()

  /// Whether names can be folded: names beyond ASCII need utf8proc.
  public static var isAvailable: Bool { functions != nil }

  /// What all spellings of a name have in common.
  public static func key(of name: [UInt8]) -> [UInt8] { name.withUnsafeBytes { key(of: $0) ?? name } }

  /// - Returns: nil for the name itself.
  static func key(of name: UnsafeRawBufferPointer) -> [UInt8]? {
    var hasCapitals = false
    for byte in name {
      if byte >= 0x80 { return keyBeyondASCII(of: name) }
      if isCapital(byte) { hasCapitals = true }
    }
    return hasCapitals ? name.map { isCapital($0) ? $0 | 0x20 : $0 } : nil
  }

  /// Whether two names are one.
  public static func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    left == right || key(of: left) == key(of: right)
  }

  private static func isCapital(_ byte: UInt8) -> Bool { byte &- 0x41 < 26 }

  /// Decomposes before it folds, since folding can take marks out of their canonical order.
  private static func keyBeyondASCII(of name: UnsafeRawBufferPointer) -> [UInt8]? {
    guard let functions, let decomposed = map(Array(name), bundlefs_utf8proc_nfd, functions) else {
      return nil
    }
    return map(decomposed, bundlefs_utf8proc_folded_nfd, functions)
  }

  /// The most code points that one of a name can become.
  private static let expansion = 18

  /// - Returns: nil for bytes that are not UTF-8.
  private static func map(_ name: [UInt8], _ options: CUnsignedInt, _ functions: bundlefs_utf8proc)
    -> [UInt8]?
  {
    let capacity = name.count * expansion + 1
    return withUnsafeTemporaryAllocation(of: Int32.self, capacity: capacity) { buffer -> [UInt8]? in
      let points = name.withUnsafeBufferPointer {
        functions.decompose($0.baseAddress, $0.count, buffer.baseAddress, capacity - 1, options)
      }
      if points < 0 || points >= capacity { return nil }
      let length = functions.reencode(buffer.baseAddress, points, options)
      if length < 0 { return nil }
      return Array(UnsafeRawBufferPointer(buffer)[..<length])
    }
  }
}
