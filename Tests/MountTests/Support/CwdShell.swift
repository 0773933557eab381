import Posix
import TestSupport
import Testing

/// Mounts and runs a shell whose working directory is in the mount while the body changes the layers.
/// - Parameters:
///   - path: the working directory, relative to the mount point.
///   - first: the shell's commands before the change, which must succeed.
///   - then: its commands after the change is visible.
/// - Returns: the shell's result.
func withCwdShell(
  _ fixture: Fixture, in path: ByteString, first: String, then: String,
  location: SourceLocation = #_sourceLocation, change: () throws -> Void
) throws -> Outcome {
  let (ready, go) = (fixture.folder / "ready", fixture.folder / "go")
  let script = """
    cd "$1" && \(first) && : > "$2" || exit
    while [[ ! -e $3 ]]; do sleep 0.02; done
    \(then)
    """
  return try withMount(fixture.setup) { mount in
    let shell = try Child(.shell(script, mount.point / path, ready, go))
    let isReady = eventually(within: 20) { ready.exists }
    #expect(isReady, "\(shell.errorText)", sourceLocation: location)
    try change()
    try mount.barrier()
    try go.write("")
    return try shell.wait(timeout: 20)
  }
}
