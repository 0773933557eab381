import Glibc
import Posix
import TestSupport

/// nginx on loopback, which serves a folder.
final class NginxServer {
  let folder: TemporaryFolder
  /// What is served.
  let files: ByteString
  let port: UInt16
  private var child: Child?

  static var isInstalled: Bool { ByteString("/usr/sbin/nginx").exists }

  /// - Parameter directives: of the location, such as `max_ranges 0;`.
  init(_ directives: String = "") throws {
    folder = try TemporaryFolder()
    files = try folder.folder("files")
    _ = try folder.folder("temporary")
    port = try LoopbackListener(port: 0).port
    let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map {
      "\($0)_temp_path temporary/\($0);"
    }
    let configuration = """
      daemon off;
      master_process off;
      pid nginx.pid;
      error_log error.log;
      events { worker_connections 64; }
      http {
        log_format short '$request_method $uri $http_range $status';
        access_log access.log short;
        \(paths.joined(separator: "\n"))
        server {
          listen 127.0.0.1:\(port);
          root files;
          location / { \(directives) }
        }
      }
      """
    try (folder / "nginx.conf").write(configuration)
    try start()
  }

  deinit { try? stop() }

  func start() throws {
    let (folder, port) = (folder, port)
    let started = try Child(
      Command([
        "/usr/sbin/nginx", "-p", folder.path, "-c", folder / "nginx.conf", "-e", folder / "error.log",
      ]))
    child = started
    let isListening = try eventually(within: 20) {
      try Command(["bash", "-c", ByteString("exec 3<>/dev/tcp/127.0.0.1/\(port)")]).run().status == 0
    }
    if !isListening { throw TestFailure("nginx has not started: \(started.errorText)") }
  }

  func stop() throws {
    try child?.kill()
    child = nil
  }

  func url(_ name: ByteString) -> ByteString { ByteString("http://127.0.0.1:\(port)/") + name }

  /// The requests so far, a line each.
  var requests: [String] {
    ((try? (folder / "access.log").readText()) ?? "").split(separator: "\n").map { String($0) }
  }

  /// Replaces a file at once. Each version has another time, by which nginx makes its ETag.
  func replace(_ name: ByteString, by content: [UInt8], version: Int) throws {
    let new = folder / "new"
    try new.write(content)
    try new.setModified(TimeSpec(seconds: 1_700_000_000 + Int64(version), nanoseconds: 0))
    try new.rename(to: files / name)
  }
}
