import Glibc
import Posix
import TestSupport
import Testing

@testable import bundlefs

@Suite struct ProgressBarTests {
  @Test("on a terminal shows the progress and erases it at the end") func onTerminal() throws {
    let terminal = try Terminal()
    var progress = ProgressBar(title: "reading a.zip", to: terminal.end, after: 0)
    Clock.sleep(0.002)
    progress.show(1, of: 4)
    #expect(terminal.text() == "\rreading a.zip [" + bar(filled: 7, of: 30) + "] 25 %")
    Clock.sleep(0.15)
    progress.show(4, of: 4)
    #expect(terminal.text() == "\rreading a.zip [" + bar(filled: 30, of: 30) + "] 100 %")
    progress.end()
    #expect(terminal.text() == "\r\u{1B}[K")
    progress.end()
    #expect(terminal.text() == "")
  }

  @Test("shows nothing before the delay") func quick() throws {
    let terminal = try Terminal()
    var bar = ProgressBar(title: "reading a.zip", to: terminal.end, after: 60_000)
    bar.show(1, of: 1)
    bar.end()
    #expect(terminal.text() == "")
  }

  @Test("writes nothing to a file or pipe") func noTerminal() throws {
    let folder = try TemporaryFolder()
    let path = folder / "log"
    try path.write("")
    try path.withOpen(O_WRONLY) { file in
      var bar = ProgressBar(title: "reading a.zip", to: file, after: 0)
      Clock.sleep(0.002)
      bar.show(1, of: 4)
      bar.end()
    }
    #expect(try path.read().isEmpty)
  }

  private func bar(filled: Int, of all: Int) -> String {
    String(repeating: "#", count: filled) + String(repeating: ".", count: all - filled)
  }
}

/// A pseudoterminal.
private final class Terminal {
  /// The end that programs write to.
  let end: CInt
  private let screen: CInt

  init() throws {
    var (screen, end): (CInt, CInt) = (-1, -1)
    guard openpty(&screen, &end, nil, nil, nil) == 0 else { throw DiskError("openpty", "", .current) }
    (self.screen, self.end) = (screen, end)
    _ = fcntl(screen, F_SETFL, O_NONBLOCK)
  }

  deinit {
    close(end)
    close(screen)
  }

  /// The text written since the last call.
  func text() -> String {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = read(screen, &buffer, buffer.count)
    return String(decoding: buffer[..<max(0, count)], as: UTF8.self)
  }
}
