import Glibc

/// Functions that glibc declares only with `_GNU_SOURCE`, so that Swift's Glibc module lacks them; found with
/// `dlsym(3)`.
enum GnuCalls {
  typealias SetAttribute =
    @convention(c) (
      UnsafePointer<CChar>?, UnsafePointer<CChar>?, UnsafeRawPointer?, Int, CInt
    ) -> CInt
  typealias GetAttribute =
    @convention(c) (
      UnsafePointer<CChar>?, UnsafePointer<CChar>?, UnsafeMutableRawPointer?, Int
    ) -> Int
  typealias ListAttributes =
    @convention(c) (UnsafePointer<CChar>?, UnsafeMutablePointer<CChar>?, Int) -> Int
  typealias RemoveAttribute = @convention(c) (UnsafePointer<CChar>?, UnsafePointer<CChar>?) -> CInt
  typealias Allocate = @convention(c) (CInt, CInt, off_t, off_t) -> CInt
  typealias SetIdentity = @convention(c) (UInt32) -> CInt
  typealias Rename =
    @convention(c) (CInt, UnsafePointer<CChar>?, CInt, UnsafePointer<CChar>?, UInt32) -> CInt

  typealias Control =
    @convention(c) (CInt, CUnsignedLong, CUnsignedLong, CUnsignedLong, CUnsignedLong) -> CInt

  static let lsetxattr = find("lsetxattr", as: SetAttribute.self)
  static let lgetxattr = find("lgetxattr", as: GetAttribute.self)
  static let llistxattr = find("llistxattr", as: ListAttributes.self)
  static let lremovexattr = find("lremovexattr", as: RemoveAttribute.self)
  static let fallocate = find("fallocate", as: Allocate.self)
  static let setfsuid = find("setfsuid", as: SetIdentity.self)
  static let setfsgid = find("setfsgid", as: SetIdentity.self)
  static let prctl = find("prctl", as: Control.self)
  static let renameat2 = find("renameat2", as: Rename.self)

  private static func find<Function>(_ name: String, as type: Function.Type) -> Function {
    guard let address = dlsym(nil, name) else { fatalError("the C library has no \(name)") }
    return unsafeBitCast(address, to: type)
  }
}
