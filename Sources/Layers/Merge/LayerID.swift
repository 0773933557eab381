/// A number below 4096 that a layer keeps when the stack changes, unlike its index. Successors know a layer by its ID.
@frozen public struct LayerID: Hashable, Sendable, BitwiseCopyable {
  public let rawValue: UInt16

  @inlinable public init(rawValue: UInt16) { self.rawValue = rawValue }

  /// - Returns: nil unless the number fits.
  @inlinable public init?(exactly number: UInt64) {
    guard let rawValue = UInt16(exactly: number) else { return nil }
    self.rawValue = rawValue
  }

  /// As an index of tables that have a place for each ID.
  @inlinable public var place: Int { Int(rawValue) }
}
