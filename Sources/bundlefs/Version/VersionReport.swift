import CVersion
import Fuse
import Posix
import Volume

/// What `bundlefs -V` prints, and a report of a fault has to say.
enum VersionReport {
  static var text: String {
    let commit = String(cString: bundlefs_commit())
    return """
      bundlefs \(Volume.version)\(commit.isEmpty ? "" : " (commit \(commit))")
      libfuse \(Session.libraryVersion)
      \(KernelFeature.line(ThisProcess.kernelRelease))
      """
  }
}
