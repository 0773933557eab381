import Glibc
import Layers
import Posix
import Volume

/// Where the times of a mount with `mtime=visible` are kept: in the file that the option names, in the work folder of the
/// layer that takes changes, or else in the user's folder of state.
struct VisibleTimesPlace {
  let plan: MountPlan
  let upper: UpperLayer?
  let isSuccessor: Bool

  /// - Returns: nil without the option. Where nothing can be kept, the times hold until the mount ends, and a message says so.
  func open() -> VisibleTimes? {
    guard case .visible(let record) = plan.arguments.options.mtime else { return nil }
    do throws(Failure) {
      if let record { return try times(in: Array(record.folder), Array(record.lastComponent)) }
      if let upper { return try times(in: upper) }
      return try times(in: try Self.stateFolder(), Self.name(of: plan.mountPoint.path), makes: true)
    } catch {
      Terminal.printError("the times of 'mtime=visible' are kept until the mount ends only: \(error.message)")
      return VisibleTimes()
    }
  }

  private func times(in upper: UpperLayer) throws(Failure) -> VisibleTimes {
    let path = upper.layer.path + [UInt8(ascii: "/")] + UpperLayer.workFolderName
    let (folder, temporary) = try Failure.naming(path.shown) { () throws(Errno) in
      try upper.workFolder()
    }
    return try times(UpperLayer.timeRecordName, in: folder, at: path, temporary)
  }

  private func times(
    in path: [UInt8], _ name: [UInt8], makes: Bool = false
  ) throws(Failure) -> VisibleTimes {
    if makes { try Self.make(path) }
    let folder = try Failure.naming(path.shown) { () throws(Errno) in
      SharedDescriptor(try Descriptor.open(path, [.read, .directory]))
    }
    return try times(name, in: folder, at: path, name + Array(".new".utf8))
  }

  private func times(
    _ name: [UInt8], in folder: SharedDescriptor, at path: [UInt8], _ temporary: [UInt8]
  ) throws(Failure) -> VisibleTimes {
    let shown = (path + [UInt8(ascii: "/")] + name).shown
    do throws(VisibleTimeLog.Fault) {
      return try VisibleTimes(
        keptIn: name, in: folder, temporary: temporary, isSuccessor: isSuccessor
      ) {
        Terminal.printError(
          "the times of 'mtime=visible' are kept until the mount ends only: \(shown): \($0.message)")
      }
    } catch {
      throw .failed("\(shown): \(error.message)")
    }
  }

  // MARK: - The folder of state

  /// `$XDG_STATE_HOME/bundlefs/times` or `~/.local/state/bundlefs/times`; for root without a home `/var/lib/bundlefs/times`.
  static func stateFolder(
    _ variable: (String) -> [UInt8]? = { name in getenv(name).map { [UInt8](bytesOf: $0) } }
  ) throws(Failure) -> [UInt8] {
    // The specification of XDG has relative paths ignored.
    let isAbsolute = { (path: [UInt8]) in path.first == UInt8(ascii: "/") }
    let state = variable("XDG_STATE_HOME").flatMap { isAbsolute($0) ? $0 : nil }
    let home = variable("HOME").flatMap { isAbsolute($0) ? $0 + Array("/.local/state".utf8) : nil }
    let system = geteuid() == 0 ? Array("/var/lib".utf8) : nil
    guard let folder = state ?? home ?? system else {
      throw .failed("the variable XDG_STATE_HOME or HOME must be set, with an absolute path")
    }
    return folder + Array("/bundlefs/times".utf8)
  }

  /// The name of the file for a mount point: a mount elsewhere has shown other files.
  static func name(of mountPoint: [UInt8]) -> [UInt8] {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in mountPoint { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    let digits = String(mixedHash(hash), radix: 16)
    return mountPoint.lastComponent.prefix(100) + Array("-\(digits)".utf8)
  }

  private static func make(_ path: [UInt8]) throws(Failure) {
    let parts = path.split(separator: UInt8(ascii: "/"))
    for count in 1...parts.count {
      let folder = [UInt8(ascii: "/")] + Array(parts[..<count].joined(separator: [UInt8(ascii: "/")]))
      if (try? Descriptor.open(folder, [.pathOnly, .directory])) != nil { continue }
      do throws(Errno) { try Descriptor.makeDirectory(folder, mode: 0o700) } catch {
        if error != .fileExists { throw .failed("\(folder.shown): \(error)") }
      }
    }
  }
}

extension [UInt8] {
  fileprivate var folder: ArraySlice<UInt8> {
    guard let slash = lastIndex(of: UInt8(ascii: "/")), slash > 0 else { return [UInt8(ascii: "/")] }
    return self[..<slash]
  }

  fileprivate var lastComponent: ArraySlice<UInt8> {
    guard let slash = lastIndex(of: UInt8(ascii: "/")) else { return self[...] }
    return self[(slash + 1)...]
  }
}
