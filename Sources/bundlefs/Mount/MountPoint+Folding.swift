import Layers
import Posix

extension MountPoint {
  /// A line about a mount point in a mount of bundlefs where case does not count; nil for others. To be asked before it is
  /// mounted.
  var foldingWarning: String? {
    guard let outer = MountTableEntry.containing(path), outer.isBundlefs, outer.mountPoint != path,
      (try? Descriptor.open(outer.mountPoint, [.read, .directory]).foldsNames()) == true
    else { return nil }
    let place = outer.mountPoint.shown
    return
      "\(path.shown) lies in the mount \(place), where case does not count: this mount is reached by this spelling of "
      + "its path only, and others show what lies beneath; add the layers to that mount instead ('bundlefs layers \(place) "
      + "add LAYER')"
  }
}
