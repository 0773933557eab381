/// An open descriptor that several owners share; the last one closes it.
public final class SharedDescriptor: Sendable {
  /// The descriptor.
  public let descriptor: Descriptor
  /// Takes ownership of the descriptor.
  public init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }
}
