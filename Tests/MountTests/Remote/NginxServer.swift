import Glibc
import Posix
import TestSupport

/// nginx on loopback, which serves a folder.
final class NginxServer {
  let folder: TemporaryFolder
  /// What is served.
  let files: ByteString
  let port: UInt16
  private let scheme: String
  private var child: Child?

  static var isInstalled: Bool { ByteString("/usr/sbin/nginx").exists }

  /// - Parameters:
  ///   - directives: of the location, such as `max_ranges 0;`.
  ///   - isEncrypted: whether it speaks TLS, with the certificate `certificate` in the folder, which no authority has signed.
  init(_ directives: String = "", isEncrypted: Bool = false) throws {
    folder = try TemporaryFolder()
    scheme = isEncrypted ? "https" : "http"
    files = try folder.folder("files")
    _ = try folder.folder("temporary")
    port = try LoopbackListener(port: 0).port
    let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map {
      "\($0)_temp_path temporary/\($0);"
    }
    if isEncrypted { try makeCertificate() }
    let listen = isEncrypted ? "ssl; ssl_certificate certificate; ssl_certificate_key key" : ""
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
          listen 127.0.0.1:\(port) \(listen);
          root files;
          location / { \(directives) }
        }
      }
      """
    try (folder / "nginx.conf").write(configuration)
    try start()
  }

  deinit { try? stop() }

  private func makeCertificate() throws {
    try Command([
      "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
      "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder / "key", "-out", folder / "certificate",
    ]).check()
  }

  /// A mount of the folder `main`, in which a file `own` is, with layers of URLs that are asked for changes often.
  func setup(_ layers: [ByteString], _ options: [ByteString] = []) throws -> MountSetup {
    if !(folder / "main").exists { try (try folder.folder("main") / "own").write("own") }
    var setup = MountSetup(main: folder / "main", point: try folder.folder("mount"), substitutions: layers)
    setup.environment["XDG_CACHE_HOME"] = (folder / "cache").text
    setup.options = ["http_refresh=0.1"] + options
    return setup
  }

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

  func url(_ name: ByteString) -> ByteString { ByteString("\(scheme)://127.0.0.1:\(port)/") + name }

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
