import Glibc
import Holder
import Posix
import Routing

/// The program that is installed now. It is opened once: what is checked here is what the holder executes, whatever has
/// its path by then.
struct UpgradeCandidate: ~Copyable {
  private let path: [UInt8]
  private let file: Descriptor

  /// In milliseconds.
  private static let timeout: CInt = 5000

  /// Opens the program, and checks that no one but root and this process's user can have written it.
  init(at path: [UInt8]) throws(Failure) {
    // Without reading it: opening a FIFO would wait for a writer.
    let file = try Failure.naming(path.shown) { () throws(Errno) in try Descriptor.open(path, [.pathOnly]) }
    let status: FileStatus
    do throws(Errno) { status = try file.attributes() } catch { throw .failed("\(path.shown): \(error)") }
    if let objection = Self.objection(to: status, user: geteuid(), group: getegid()) {
      throw .failed("\(path.shown): \(objection)")
    }
    self.path = path
    self.file = file
  }

  /// Why a program is not trusted; nil if it is.
  /// - Parameters:
  ///   - user: the effective user, as which it would run.
  ///   - group: the effective group.
  static func objection(to status: FileStatus, user: UInt32, group: UInt32) -> String? {
    if !status.isRegular { return "it is not a regular file" }
    if status.owner != 0, status.owner != user {
      return "it belongs to user \(status.owner), and neither to root nor to the owner of the mount"
    }
    // With an access control list, the bits of the group are those of its mask.
    if status.mode & 0o022 != 0 { return "other users may write it; 'chmod go-w' it" }
    if status.mode & 0o4000 != 0, status.owner != user { return "it would run as user \(status.owner)" }
    if status.mode & 0o2000 != 0, status.group != group { return "it would run as group \(status.group)" }
    return nil
  }

  /// Asks the program whether it can go on with the state of this one, and with these arguments.
  func check(_ arguments: [[UInt8]]) throws(Failure) {
    let nonce = Self.nonce()
    let version = "\(HolderState.currentVersion)"
    let question = ["--can-resume", version, nonce].map { Array($0.utf8) }
    let run: BoundedRun
    do throws(Errno) {
      run = try BoundedRun(of: file, [path] + question + arguments, timeoutMilliseconds: Self.timeout)
    } catch { throw .failed("\(path.shown): it cannot be run: \(error)") }
    let lines = run.output.shown.split(separator: "\n")
    switch run.end {
    case .exited(0) where lines.contains(Self.answer(version: version, nonce: nonce)[...]): return
    case .exited(0): throw .failed("\(path.shown): it does not answer as bundlefs does")
    case .exited:
      throw .failed("\(path.shown): \(lines.last.map { String($0).escapingControls } ?? "it fails")")
    case .signal(let signal): throw .failed("\(path.shown): it was killed by signal \(signal)")
    case .timedOut:
      throw .failed("\(path.shown): it does not answer within \(Self.timeout / 1000) s")
    }
  }

  /// Gives up ownership.
  consuming func release() -> CInt { file.release() }

  private static func nonce() -> String {
    String(UInt64.random(in: .min ... .max), radix: 16) + String(UInt64.random(in: .min ... .max), radix: 16)
  }

  /// The line by which a program says that it can go on. The nonce shows that the program has understood the question.
  private static func answer(version: String, nonce: String) -> String {
    "bundlefs can resume version \(version): \(nonce)"
  }

  /// `bundlefs --can-resume VERSION NONCE --resume ARGUMENT…`: answers the question, unless this program knows another
  /// version of the state only, or not all of the arguments.
  static func answer(_ question: [[UInt8]]) throws(Failure) {
    guard question.count > 2, question[0].shown == "\(HolderState.currentVersion)" else {
      throw .failed("it cannot continue a mount of this version; unmount it and mount it again")
    }
    _ = try MountCommand(resuming: Array(question.dropFirst(3)))
    Terminal.print(answer(version: question[0].shown, nonce: question[1].shown))
  }
}
