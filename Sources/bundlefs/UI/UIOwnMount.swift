import Glibc
import Posix

/// The mount that `bundlefs ui MAIN -o …` makes for as long as it runs, in a folder of its own.
struct UIOwnMount {
  /// The mount point, which has MAIN's name.
  let path: [UInt8]
  private let folder: UITemporaryFolder

  /// The name of the mount point. MAIN may be on a file system that hangs.
  static func name(of main: [UInt8]) -> [UInt8] {
    let name = MountOptions.resolved(main).split(separator: UInt8(ascii: "/")).last
    return name.map { Array($0) } ?? Array("mount".utf8)
  }

  /// - Parameters:
  ///   - options: lists of mount options.
  ///   - end: a descriptor that becomes readable when the mount is no longer wanted.
  init(_ main: [UInt8], named name: [UInt8], _ options: [[UInt8]], until end: CInt) throws(Failure) {
    var path: [UInt8] = []
    let folder = UITemporaryFolder.make { folder in
      path = Array("\(folder.path)/".utf8) + name
      return (try? Descriptor.makeDirectory(path, mode: 0o700)) != nil
    }
    guard let folder else { throw .failed("ui: no folder for temporary files can be written to") }
    (self.path, self.folder) = (path, folder)
    do throws(Failure) { try mount(main, options, until: end) } catch {
      self.end()
      throw error
    }
  }

  private func mount(_ main: [UInt8], _ options: [[UInt8]], until end: CInt) throws(Failure) {
    let lists = options.flatMap { [Array("-o".utf8), $0] }
    let words = [ProgramUpgrade.path] + lists + [Array("--".utf8), main, path]
    switch ChildProcess.runQuietlyApart(words, until: end) {
    case .succeeded: return
    case .ended: throw .failed("ui: ended before \(main.shown) was mounted")
    case .notFound: throw .failed("ui: \(ProgramUpgrade.path.shown) cannot be run")
    case .failed(let message):
      let start = "bundlefs: "
      throw .failed(message.hasPrefix(start) ? String(message.dropFirst(start.count)) : message)
    }
  }

  /// Unmounts, also while programs use the mount, and removes the folder.
  func end() {
    if MountTableEntry.top(at: path)?.isBundlefs == true {
      do throws(Failure) { _ = try UnmountCommand([path]).run() } catch {
        try? MountPoint(path: path).unmount(isLazy: true)
      }
    }
    rmdir(path.map { CChar(bitPattern: $0) } + [0])
    folder.remove()
  }
}
