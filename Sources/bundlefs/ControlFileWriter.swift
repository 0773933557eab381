import Posix
import Routing

/// A control file to which lines are written one by one, and what became of each.
struct ControlFileWriter: ~Copyable {
  private let file: Descriptor
  /// The last result that was seen.
  private var last: UInt64

  /// Opens the control file.
  /// - Parameter device: that of the mount that is meant, where it matters that no other one has taken its place.
  init(to control: MountedControl, on device: UInt64? = nil) throws(Errno) {
    let file = try control.open([.readWrite])
    if let device, try file.device() != device { throw .inappropriateIOCTLForDevice }
    last = try MountedControl.results(of: file).last?.sequence ?? 0
    self.file = file
  }

  /// What became of a line.
  struct Outcome {
    /// Its result; nil if it has none, or there were more since than the file keeps.
    let result: ResultLine?
    /// Why it was refused.
    let error: Errno?
  }

  /// Writes a line.
  /// - Parameter url: the line, or the URL at its end: as one of them its result is known.
  /// - Throws: ENOTCONN when the mount is gone.
  mutating func write(_ line: [UInt8], of url: [UInt8]) throws(Errno) -> Outcome {
    var refusal: Errno?
    do throws(Errno) { try file.writeInOneCall(line + [UInt8(ascii: "\n")]) } catch {
      if error == .socketNotConnected { throw error }
      refusal = error
    }
    let before = last
    let results = try MountedControl.results(of: file).filter { $0.sequence > before }
    last = results.last?.sequence ?? last
    // Of a line that is malformed the result shows all.
    return Outcome(result: results.first { $0.isResult(of: url) || $0.isResult(of: line) }, error: refusal)
  }
}
