import Glibc
import Holder
import Layers
import Posix
import Volume

/// Where the times of a mount with `mtime=visible` are kept: in the file that the option names, in the work folder of the
/// layer that takes changes, or else in the user's folder of state.
struct VisibleTimesPlace {
  let plan: MountPlan
  let upper: UpperLayer?
  /// Has the folder's descriptor for a successor: its path may lead into the mount, which nothing serves then.
  let survival: SurvivalMemory?
  let isSuccessor: Bool

  /// - Returns: nil without the option. Where nothing can be kept, the times hold until the mount ends, and a message says so.
  func open() -> VisibleTimes? {
    guard case .visible(let record) = plan.arguments.options.mtime else { return nil }
    do throws(Failure) {
      if record == nil, let upper { return try times(in: upper) }
      let (path, name) =
        if let record { record.folderAndName } else {
          (try Self.stateFolder(), Self.name(of: plan.mountPoint.path))
        }
      let folder = try isSuccessor ? inheritedFolder() : folder(path, makes: record == nil)
      return try times(name, in: folder, at: path, Self.temporary(name))
    } catch {
      Terminal.printError("the times of 'mtime=visible' are kept until the mount ends only: \(error.message)")
      return VisibleTimes()
    }
  }

  private func times(in upper: UpperLayer) throws(Failure) -> VisibleTimes {
    let path =
      (plan.workDirectory ?? upper.layer.path) + [UInt8(ascii: "/")] + UpperLayer.workFolderName
    if upper.layer.gate.isRemote { throw Self.refusal(path) }
    let (folder, temporary) = try Failure.naming(path.shown) { () throws(Errno) in
      try upper.workFolder()
    }
    return try times(UpperLayer.timeRecordName, in: folder, at: path, temporary)
  }

  /// Opens the folder before the mount can cover it.
  private func folder(_ path: [UInt8], makes: Bool) throws(Failure) -> SharedDescriptor {
    if makes { try UserFolder.make(path) }
    let folder = try Failure.naming(path.shown) { () throws(Errno) in
      let folder = SharedDescriptor(try Descriptor.open(path, [.read, .directory]))
      return FileSystemType.isRemote(try folder.descriptor.fileSystemType()) ? nil : folder
    }
    guard let folder else { throw Self.refusal(path) }
    if let survival {
      survival.state.times = try Failure.naming(path.shown) { () throws(Errno) in
        try Descriptor.duplicate(of: folder.descriptor.rawValue).release() + 1
      }
    }
    return folder
  }

  /// Each new record is written while requests wait.
  private static func refusal(_ path: [UInt8]) -> Failure {
    .failed("\(path.shown): it is on a file system that may not answer")
  }

  private func inheritedFolder() throws(Failure) -> SharedDescriptor {
    guard let survival, survival.state.times > 0 else {
      throw .failed("the first worker could not open the record")
    }
    return try Failure.naming("the folder of the record") { () throws(Errno) in
      SharedDescriptor(try Descriptor.duplicate(of: survival.state.times - 1))
    }
  }

  /// The name of a file that is about to replace the record. No other program can have a file of that name.
  private static func temporary(_ name: [UInt8]) -> [UInt8] {
    let random = String(UInt64.random(in: 0 ... .max), radix: 36)
    return [UInt8(ascii: ".")] + name.prefix(200) + Array(".\(random)".utf8)
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
    _ variable: UserFolder.Variable = UserFolder.environment,
    isOwn: ([UInt8]) -> Bool = { path in
      (try? Descriptor.open(path, [.pathOnly, .directory]).attributes().owner) == geteuid()
    }
  ) throws(Failure) -> [UInt8] {
    // With sudo(8) HOME can be another user's, in which root would make folders of its own.
    let own = UserFolder.base("XDG_STATE_HOME", orInHome: ".local/state", variable, isUsable: isOwn)
    let system = geteuid() == 0 ? Array("/var/lib".utf8) : nil
    guard let folder = own ?? system else {
      throw .failed(
        "the variable XDG_STATE_HOME or HOME must be set, with the absolute path of a folder of yours")
    }
    return folder + Array("/bundlefs/times".utf8)
  }

  /// The name of the file for a mount point: a mount elsewhere has shown other files.
  static func name(of mountPoint: [UInt8]) -> [UInt8] {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in mountPoint { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    let digits = String(mixedHash(hash), radix: 16)
    return mountPoint.folderAndName.name.prefix(100) + Array("-\(digits)".utf8)
  }
}
