import Glibc
import Posix

/// What libfuse and the programs that it runs (fusermount3) print to standard error, kept back so that the
/// user is told in one line.
enum StderrCapture {
  /// Runs the body with standard error going to a file of its own. No other thread may be printing.
  /// - Parameter wanted: false lets everything through.
  /// - Returns: the body's result, and the last line printed, without the name of the program that printed
  ///   it; nil if there was none.
  static func during<Result>(_ wanted: Bool, _ body: () -> Result) -> (result: Result, words: String?) {
    guard wanted, let stream = tmpfile() else { return (body(), nil) }
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
