import Glibc
import Posix

/// The mount that `bundlefs ui MAIN -o …` makes for as long as it runs, in a folder of its own.
struct UIOwnMount {
  /// The mount point, which has MAIN's name.
  let path: [UInt8]
  private let folder: UITemporaryFolder

  init(_ main: [UInt8], _ options: [[UInt8]]) throws(Failure) {
    let name = MountOptions.resolved(main).split(separator: UInt8(ascii: "/")).last.map { Array($0) }
    var path: [UInt8] = []
    let folder = UITemporaryFolder.make { folder in
      path = Array("\(folder.path)/".utf8) + (name ?? Array("mount".utf8))
      return (try? Descriptor.makeDirectory(path, mode: 0o700)) != nil
    }
    guard let folder else { throw .failed("ui: no folder for temporary files can be written to") }
    (self.path, self.folder) = (path, folder)
    do throws(Failure) { try mount(main, options) } catch {
      end()
      throw error
    }
  }

  private func mount(_ main: [UInt8], _ options: [[UInt8]]) throws(Failure) {
    let lists = options.flatMap { [Array("-o".utf8), $0] }
    switch ChildProcess.runQuietlyApart([ProgramUpgrade.path] + lists + [Array("--".utf8), main, path]) {
    case .succeeded: return
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
