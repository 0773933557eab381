import Glibc
import Posix

/// Captures what libfuse and fusermount3 print to standard error, to report it as one line.
enum StderrCapture {
  /// Calls the body with standard error redirected to a temporary file. No other thread may print to it.
  /// - Parameter isEnabled: false does not redirect.
  /// - Returns: the body's result, and the last line printed, without the program's name; nil if none was.
  static func during<Result>(_ isEnabled: Bool, _ body: () -> Result) -> (result: Result, message: String?) {
    guard isEnabled, let stream = tmpfile() else { return (body(), nil) }
    defer { fclose(stream) }
    let saved = dup(STDERR_FILENO)
    guard saved >= 0 else { return (body(), nil) }
    dup2(fileno(stream), STDERR_FILENO)
    let result = body()
    dup2(saved, STDERR_FILENO)
    close(saved)
    return (result, lastLine(of: fileno(stream)))
  }

  private static func lastLine(of file: CInt) -> String? {
    guard var line = LastLine.read(from: file) else { return nil }
    for prefix in ["fuse: ", "bundlefs: "] where line.hasPrefix(prefix) {
      line = line.dropFirst(prefix.count)
    }
    return String(line)
  }
}
