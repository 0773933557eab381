import Posix
import TestSupport
import Testing

/// Set-user-ID programs that another user starts with the control file as their standard error.
extension MountTests {
  @Suite struct DeputyTests {
    private static let script = """
      bash -c "exec -a $'route Evil s:E\\n#' fusermount3 -u -- /nonexistent 2>\\"$R\\""
      bash -c "exec -a $'bundlefs:///invalidate\\n#' fusermount3 -u -- /nonexistent 2>\\"$R\\""
      """

    @Test("a set-user-ID program lends nobody its rights on the routes", .timeLimit(.minutes(1)))
    func deputy() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup("allow_other", "routes_mode=622")) { mount in
        _ = try mount.bash(Self.script, user: UnprivilegedTests.nobody)
        let text = try mount.routesText()
        #expect(text.routes == [] && text.summaries.contains("rejected EPERM"), "\(text.summaries)")
        #expect(!text.summaries.contains("applied"))
        // Root itself, by a shell, by the command and by another program.
        try mount.writeControl("route First s:A\n")
        #expect(try mount.bash("echo 'route Second s:A/s:B' > \"$R\"").status == 0)
        try mount.command("sync")
        #expect(try mount.routesText().routes == ["route First s:A", "route Second s:A/s:B"])
      }
    }

    @Test("with the default mode such a program is not examined", .timeLimit(.minutes(1)))
    func ownDeputy() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup("allow_other")) { mount in
        _ = try mount.bash(Self.script, user: UnprivilegedTests.nobody)
        #expect(try mount.routesText().summaries == [], "it could not be started with the file")
        _ = try mount.bash(Self.script)
        #expect(try mount.routesText().routes == ["route Evil s:E"], "the owner's own doing")
      }
    }
  }
}
