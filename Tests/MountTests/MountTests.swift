import Testing

/// All tests that mount.
///
/// They run serially within a process; `scripts/test` runs the suites side by side, each in its own process.
@Suite(.serialized) struct MountTests {}

extension MountTests {
  /// Tests that lower limits of the kernel, drop its caches, expect certain requests of the kernel, or depend on the
  /// load: `scripts/test` runs them one at a time, after all others.
  @Suite struct ExclusiveTests {}
}
