import Posix
import TestSupport
import Testing

@testable import Bundles

/// Compares types from the system's databases with GLib and Python.
@Suite struct MIMEAgreementTests {
  /// Creates a file for each literal suffix in the system's globs and in Python's types, and prints its types.
  private static let script = """
    import mimetypes, os, subprocess, sys
    folder = sys.argv[1]
    names = set()
    for line in open('/usr/share/mime/globs2'):
        pattern = line.rstrip('\\n').split(':')[2:3]
        if pattern and pattern[0].startswith('*.') and not set(pattern[0][1:]) & set('*?[\\\\'):
            names.add('sample' + pattern[0][1:])
    mimetypes.init()
    names |= {'sample' + suffix for suffix in mimetypes.types_map if '/' not in suffix}
    names |= {name.upper() for name in sorted(names)[::5]}
    for name in names:
        with open(os.path.join(folder, name), 'w') as file:
            file.write('x')
    reported = {}
    environment = {'PATH': os.environ['PATH'], 'LC_ALL': 'C.UTF-8', 'HOME': folder, 'XDG_DATA_HOME': folder}
    text = subprocess.run(
        ['gio', 'info', '-a', 'standard::fast-content-type', *sorted(names)],
        cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        word, _, rest = line.strip().partition(': ')
        if word == 'uri':
            name = rest.rsplit('/', 1)[1]
        elif word == 'standard::fast-content-type':
            reported[name] = rest
    known = [name for name in sorted(names) if reported.get(name, '-') not in ('-', 'application/octet-stream')]
    # Without a desktop, xdg-mime calls file(1), which examines the content. GNOME's tool uses the databases.
    environment['XDG_CURRENT_DESKTOP'] = 'GNOME'
    for name in known[::len(known) // 40]:
        answer = subprocess.run(
            ['xdg-mime', 'query', 'filetype', name],
            cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout.strip()
        print('xdg', name, reported[name], answer)
    for name in sorted(names):
        guessed, encoding = mimetypes.guess_type(name)
        print(name, reported.get(name, '-'), guessed if guessed and not encoding else '-')
    """

  @Test("types agree where GLib and Python agree, for at least 300 names; xdg-mime agrees with GLib")
  func agreement() throws {
    let folder = try TemporaryFolder()
    let output = try Command(["python3", "-c", ByteString(Self.script), folder.path]).check().outputText
    let types = MIMETypes()
    var (agreed, sameAsGLib, reported, queried) = (0, 0, 0, 0)
    for line in output.split(separator: "\n") {
      let words = line.split(separator: " ").map(String.init)
      if words.count == 4 {
        // Only a sample, since each query takes 100 ms.
        queried += 1
        #expect(words[3] == words[2], "xdg-mime of \(words[1])")
      }
      guard words.count == 3 else { continue }
      let ours = types.type(forName: Array(words[0].utf8))
      if words[1] == words[2] {
        agreed += 1
        #expect(ours == words[1], "\(words[0])")
      }
      if words[1] != "application/octet-stream" && words[1] != "-" {
        reported += 1
        if ours == words[1] { sameAsGLib += 1 }
      }
    }
    #expect(agreed >= 300 && queried >= 40)
    // The other differences are patterns that several types share.
    #expect(sameAsGLib * 100 >= reported * 97, "\(sameAsGLib) of \(reported)")
  }
}
