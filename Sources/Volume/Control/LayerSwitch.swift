import Layers
import Routing

/// The switch of a mount to another stack of layers. The process records the new stack (`StackRecorder`) and hands over to
/// another one, which serves the new stack from its first request on. The WRITE that asks for the switch is left unanswered,
/// so that the kernel sends it to that process again, which expires the names of the changed layers before it replies.
public struct LayerSwitch: Sendable {
  let make:
    @Sendable (_ paths: [[UInt8]], _ request: UInt64, _ used: Set<LayerID>) throws(RoutingError) -> Void
  let wasMade: @Sendable (_ request: UInt64) -> Bool
  let reopen: @Sendable (_ used: Set<LayerID>) throws(RoutingError) -> Bool
  let release: @Sendable (_ ids: Set<LayerID>) -> Bool
  let handOver: @Sendable () -> Void

  /// - Parameters:
  ///   - make: opens the layers and records them, all or none; called on a thread that may wait for the mount itself. Gets
  ///     the IDs of the layers that nodes refer to, which must be kept. Throws an error that names the layer at fault.
  ///   - wasMade: whether a WRITE, given by its `unique`, has had its stack recorded.
  ///   - reopen: opens the folders that have taken the places of archives, and records them; false without any. Called as
  ///     `make`.
  ///   - release: forgets layers to which no node refers any more, by their IDs; false if the process is about to hand over.
  ///   - handOver: has the process end soon, with the connection as it is.
  public init(
    make:
      @escaping @Sendable (_ paths: [[UInt8]], _ request: UInt64, _ used: Set<LayerID>)
      throws(RoutingError) -> Void,
    wasMade: @escaping @Sendable (_ request: UInt64) -> Bool,
    reopen: @escaping @Sendable (_ used: Set<LayerID>) throws(RoutingError) -> Bool,
    release: @escaping @Sendable (_ ids: Set<LayerID>) -> Bool, handOver: @escaping @Sendable () -> Void
  ) {
    self.make = make
    self.wasMade = wasMade
    self.reopen = reopen
    self.release = release
    self.handOver = handOver
  }
}
