import CLibrary
import Posix

/// What the upper layer had at a name: it is kept in the work folder, where no view shows it, and can be put back. A later
/// process removes it once this one has ended.
public struct TakenEntry: Sendable {
  /// The entry's name in the work folder; nil if the layer had none.
  let entry: [UInt8]?
  /// Likewise of the whiteout marker.
  let marker: [UInt8]?
  /// The times of the directory, as they were before.
  let times: (accessed: TimeSpec, modified: TimeSpec)

  /// Nothing was taken away from a directory.
  public init(nothingIn directory: LayerDirectory) throws(Errno) {
    let status = try directory.attributes()
    self.init(entry: nil, marker: nil, times: (status.accessed, status.modified))
  }

  init(entry: [UInt8]?, marker: [UInt8]?, times: (accessed: TimeSpec, modified: TimeSpec)) {
    (self.entry, self.marker, self.times) = (entry, marker, times)
  }

  /// Whether the layer had nothing, nor hid the name.
  public var isNothing: Bool { entry == nil && marker == nil }
}

extension UpperLayer {
  /// Takes away what this layer has at a name of this spelling, so that the layers below show.
  public func take(_ name: CName, from parent: LayerDirectory) throws(Errno) -> TakenEntry {
    try changing(parent) { (parent, times) throws(Errno) in
      // First, since it hides nothing while there is an entry.
      let marker = try withMarker(of: name) { marker throws(Errno) in try setAside(marker, in: parent) }
      do throws(Errno) {
        let entry = try setAside(name, in: parent)
        return TakenEntry(entry: entry, marker: marker ?? nil, times: times)
      } catch {
        putMarkerBack(marker ?? nil, of: name, in: parent)
        throw error
      }
    }
  }

  /// Undoes what was done to a marker before something failed.
  private func putMarkerBack(_ marker: [UInt8]?, of name: CName, in parent: borrowing Descriptor) {
    guard let marker else { return }
    try? work.withFolder { folder throws(Errno) in
      _ = try withMarker(of: name) { name throws(Errno) in
        try Self.move(marker, from: folder, to: name, in: parent)
      }
    }
  }

  /// Puts back what was taken away.
  /// - Throws: EEXIST if the layer has an entry of the name now; then nothing has changed.
  public func putBack(_ taken: TakenEntry, as name: CName, in parent: LayerDirectory) throws(Errno) {
    try changing(parent) { (parent, _) throws(Errno) in
      try work.withFolder { folder throws(Errno) in
        if let entry = taken.entry { try Self.move(entry, from: folder, to: name, in: parent) }
        guard let marker = taken.marker else { return }
        do throws(Errno) {
          _ = try withMarker(of: name) { name throws(Errno) in
            try Self.move(marker, from: folder, to: name, in: parent)
          }
        } catch {
          if let entry = taken.entry {
            try withCName(entry) { entry throws(Errno) in
              try parent.renameNew(name, to: entry, in: folder)
            }
          }
          throw error
        }
      }
      try? parent.setTimes(accessed: .at(taken.times.accessed), modified: .at(taken.times.modified))
    }
  }

  /// Removes what was taken away for good.
  public func discard(_ taken: TakenEntry) {
    for name in [taken.entry, taken.marker] {
      guard let name else { continue }
      try? layer.gate.call { () throws(Errno) in
        try work.withFolder { folder throws(Errno) in try work.removeTree(name, in: folder) }
      }
    }
  }

  /// Hides a name in the layers below, and takes away what this layer has of it.
  /// - Throws: EEXIST if it is hidden already, and has no entry here.
  public func hide(_ name: CName, in parent: LayerDirectory) throws(Errno) -> TakenEntry {
    if case .whiteout = try parent.findExact(name, isLikelyDirectory: false) { throw .fileExists }
    return try changing(parent) { (parent, times) throws(Errno) in
      let hasEntry = try parent.contains(name)
      if !hasEntry, try whiteouts.hasMarker(of: name, in: parent) { throw .fileExists }
      if let entry = try replaceByHiddenDevice(name, in: parent, hasEntry: hasEntry) {
        return TakenEntry(entry: entry.name, marker: nil, times: times)
      }
      // While there is an entry, markers hide nothing.
      let former = try withMarker(of: name) { marker throws(Errno) in try setAside(marker, in: parent) }
      do throws(Errno) {
        _ = try whiteouts.makeMarker(of: name, in: parent)
        return TakenEntry(entry: try setAside(name, in: parent), marker: former ?? nil, times: times)
      } catch {
        try? whiteouts.removeMarker(of: name, in: parent)
        putMarkerBack(former ?? nil, of: name, in: parent)
        throw error
      }
    }
  }

  /// - Returns: nil if whiteouts are markers; else the former entry's name in the work folder, if there was one.
  private func replaceByHiddenDevice(
    _ name: CName, in parent: borrowing Descriptor, hasEntry: Bool
  ) throws(Errno) -> (name: [UInt8]?, Void)? {
    if whiteouts.areMarkers { return nil }
    return try work.withName { folder, temporary throws(Errno) in
      guard try whiteouts.makeReplacement(temporary, in: folder) else { return nil }
      let aside = try exchange(temporary, in: folder, with: name, in: parent)
      return (aside ? [UInt8](bytesOf: temporary) : nil, ())
    }
  }

  /// Gives an entry of the work folder a name, whole or not at all, and keeps the former entry under the name in the folder.
  /// - Returns: whether there was a former entry.
  func exchange(
    _ temporary: CName, in folder: borrowing Descriptor, with name: CName, in parent: borrowing Descriptor
  ) throws(Errno) -> Bool {
    var isExchanged = false
    do throws(Errno) {
      // A name that appears or vanishes meanwhile.
      for _ in 0..<16 {
        isExchanged = try parent.contains(name)
        do throws(Errno) {
          try parent.unlocking(name) { () throws(Errno) in
            if isExchanged {
              try folder.rename(temporary, to: name, in: parent, .exchange)
            } else {
              try folder.renameNew(temporary, to: name, in: parent)
            }
          }
          return isExchanged
        } catch {
          if error != .fileExists && error != .noSuchFileOrDirectory { throw error }
        }
      }
      throw .resourceBusy
    } catch {
      try? folder.remove(temporary, isDirectory: false)
      throw error
    }
  }

  /// Moves an entry to the work folder.
  /// - Returns: its name there; nil if there is none.
  func setAside(_ name: CName, in parent: borrowing Descriptor) throws(Errno) -> [UInt8]? {
    do throws(Errno) {
      return try work.withName { folder, aside throws(Errno) in
        try parent.unlocking(name) { () throws(Errno) in
          try parent.renameNew(name, to: aside, in: folder)
        }
        return [UInt8](bytesOf: aside)
      }
    } catch {
      if error == .noSuchFileOrDirectory { return nil }
      throw error
    }
  }

  private static func move(
    _ aside: [UInt8], from folder: borrowing Descriptor, to name: CName, in parent: borrowing Descriptor
  ) throws(Errno) {
    try withCName(aside) { aside throws(Errno) in
      try folder.unlocking(aside) { () throws(Errno) in
        try folder.renameNew(aside, to: name, in: parent)
      }
    }
  }

  /// - Returns: nil for a name that no marker can have.
  func withMarker<Result>(
    of name: CName, _ body: (CName) throws(Errno) -> Result
  ) throws(Errno) -> Result? {
    try WhiteoutMarker.withMarker(of: name, length: strlen(name), body)
  }

  /// Runs the body, which changes the entries of a directory, with the directory's present times.
  func changing<Result>(
    _ parent: LayerDirectory,
    _ body: (borrowing Descriptor, (accessed: TimeSpec, modified: TimeSpec)) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    try parent.withDescriptor { parent throws(Errno) in
      let status = try parent.attributes()
      var result: Result?
      try parent.unlocking(".", relocks: true) { () throws(Errno) in
        result = try body(parent, (status.accessed, status.modified))
      }
      guard let result else { throw .ioError }
      return result
    }
  }
}
