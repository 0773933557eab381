import ControlClient
import Layers
import Posix
import Routing

/// A mount that the page shows. Only `feed`, while a page listens, keeps a file of the mount open.
final class UIMount: Sendable {
  let mountPoint: MountPoint
  /// The number by which requests name it.
  let id: Int
  /// The mount's device number, so that another mount at the same path is not taken for it.
  let device: UInt64
  let edits: UIEdits
  let feed: UIFeed
  let archives = UIArchives()

  init(_ mountPoint: MountPoint, id: Int) throws(Failure) {
    device = try Failure.naming(mountPoint.path.shown) { () throws(Errno) in
      try mountPoint.open([.pathOnly, .directory]).device()
    }
    var mountPoint = mountPoint
    mountPoint.device = device
    (self.mountPoint, self.id) = (mountPoint, id)
    (edits, feed) = (UIEdits(mountPoint), UIFeed())
  }

  /// The status as the mount's daemon writes it.
  func statusText() throws(Errno) -> [UInt8] {
    try StatusClient.read(.json, of: mountPoint.open([.read, .directory]))
  }

  func status() throws(Failure) -> UIStatus {
    let (status, mounted) = try MountedLayers.asked(of: mountPoint)
    return UIStatus(value: status, mounted: mounted)
  }
}

/// What a mount says of itself.
struct UIStatus {
  let value: JSONValue
  let mounted: MountedLayers

  var foldsNames: Bool { value["options"]?["case"]?.string == "insensitive" }
  /// Whether it has a control file.
  var hasControl: Bool { !(value["control"]?.string ?? "").isEmpty }
  var encoding: NameEncoding? { value["options"]?["archive_encoding"]?.string.flatMap { NameEncoding($0) } }
}
