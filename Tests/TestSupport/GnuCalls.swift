import Glibc

/// Calls that glibc declares for GNU sources only, so that Swift's Glibc module does not show them; they are
/// found by name in the running process.
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

  static let lsetxattr = find("lsetxattr", as: SetAttribute.self)
  static let lgetxattr = find("lgetxattr", as: GetAttribute.self)
  static let llistxattr = find("llistxattr", as: ListAttributes.self)
  static let lremovexattr = find("lremovexattr", as: RemoveAttribute.self)

  private static func find<Function>(_ name: String, as type: Function.Type) -> Function {
    guard let address = dlsym(nil, name) else { fatalError("the C library has no \(name)") }
    return unsafeBitCast(address, to: type)
  }
}
