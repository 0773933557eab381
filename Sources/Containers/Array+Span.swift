extension Array {
  /// A copy of the elements.
  @inlinable
  public init(_ elements: Span<Element>) { self = elements.withUnsafeBufferPointer { Array($0) } }
}
