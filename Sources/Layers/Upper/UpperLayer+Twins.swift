import Posix

extension MergedDirectory {
  /// Whether several entries of the top layer are a name.
  func hasTwins(named name: CName) throws(Errno) -> Bool {
    guard foldsNames else { return false }
    return try entries(named: [UInt8](bytesOf: name), in: 0..<end(ofLayerAt: 0)).count > 1
  }
}

extension UpperLayer {
  /// Leaves one of this layer's directories that are one name and show nothing: it takes over what the others hide in the
  /// layers below, before these go, so that nothing comes to light if this process dies meanwhile.
  /// - Parameters:
  ///   - removed: the directory that is about to go.
  ///   - name: the spelling of the one that stays, which is in the top part.
  /// - Throws: ENOTEMPTY if one of them has names that the view hides.
  func absorbTwins(of removed: MergedDirectory, _ name: CName, in parent: MergedDirectory) throws(Errno) {
    guard removed.top.layer == parent.top.layer, removed.end(ofLayerAt: 0) > 1,
      case .directory(let kept, _) = try parent.top.findExact(name, isLikelyDirectory: true)
    else { return }
    let range = 0..<parent.end(ofLayerAt: 0)
    for other in try parent.entries(named: [UInt8](bytesOf: name), in: range) {
      guard case .directory(let twin, _) = try other.find(), twin.identity != kept.identity else { continue }
      try takeOver(from: twin, to: kept)
      try withCName(other.name) { name throws(Errno) in
        try other.parent.withDescriptor { parent throws(Errno) in
          try refuseHiddenEntries(name, in: parent)
          try removeByWorkFolder(name, in: parent)
        }
      }
    }
  }

  /// Has a directory hide what its twin hides.
  private func takeOver(from twin: LayerDirectory, to kept: LayerDirectory) throws(Errno) {
    let isOpaque = try twin.isOpaque()
    // The markers of opaque directories are none.
    let hidden = try twin.whiteoutNames().filter { !WhiteoutMarker.isMarker($0) && !$0.isEmpty }
    try kept.withDescriptor { kept throws(Errno) in
      if isOpaque { try whiteouts.makeOpaque(kept) }
      for name in hidden {
        try withCName(name) { name throws(Errno) in
          do throws(Errno) { try makeWhiteout(name, in: kept) } catch {
            guard error == .fileExists, try kept.hasDeviceWhiteout(name) else { throw error }
          }
        }
      }
    }
  }
}
