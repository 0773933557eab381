extension Help {
  /// The help for one command: its lines of the usage, and what it does.
  static func text(for command: String) -> String {
    let paragraphs = [usage(of: command)] + (descriptions[command].map { [$0] } ?? [])
    return paragraphs.joined(separator: "\n\n")
  }

  /// The lines of the usage that begin with the command, with those that continue them.
  private static func usage(of command: String) -> String {
    var lines: [Substring] = []
    var isOfCommand = false
    for line in text.split(separator: "\n", omittingEmptySubsequences: false).dropFirst() {
      if line.isEmpty { break }
      let words = line.split(separator: " ")
      if words.first == "bundlefs" { isOfCommand = words.dropFirst().first.map { $0 == command } ?? false }
      if isOfCommand { lines.append(line) }
    }
    return "usage: " + lines.joined(separator: "\n").drop { $0 == " " }
  }

  /// Whether help is asked for before the arguments that belong to another program.
  static func isRequestedForCommand(by arguments: [[UInt8]]) -> Bool {
    isRequested(by: Array(arguments.prefix { !["--", "--exec"].contains($0.shown) }))
  }

  private static let json = "    --json       print JSON"
  private static let positions = """
        --top        above all other layers (default of 'add')
        --bottom     right above MAIN
        --above LAYER, --below LAYER
                     next to another layer
    """

  private static let descriptions = [
    "unmount": """
    Unmounts, also if the daemon is dead or does not answer.

        --lazy       do not wait for programs that use the mount
        --all        unmount all mounts of yours, the newest first
    """,
    "run": """
    Mounts over MAIN for COMMAND and its children only. The exit status is
    COMMAND's; 125, 126 and 127 are those of env(1).

        -o OPTION    mount options, see 'bundlefs --help'
        --at DIR     mount over DIR instead of MAIN
    """,
    "list": """
    Prints all bundlefs mounts that you may see, with their state, user and layers.

    \(json)
    """,
    "status": """
    Prints the layers of a mount, its caches, and counts of its requests. MOUNTPOINT
    may be any path within the mount.

    \(json)
    """,
    "health": """
    Says whether mounts work, and what is wrong with those that do not. MOUNTPOINT
    may be any path within a mount. The answer comes within two seconds.

        --all        all mounts that you may ask
    \(json)

    Exit status, that of the worst mount:
        0            healthy
        1            degraded: it works, but a layer is missing, does not answer, has
                     faults or cannot be watched, or its worker process dies again
                     and again
        2            dead: its daemon is dead or does not answer, another mount covers
                     it, or no bundlefs is mounted there; also a usage error
    """,
    "metrics": """
    Prints counters and gauges of mounts in the OpenMetrics text format, for
    Prometheus. MOUNTPOINT may be any path within a mount. The answer comes within
    two seconds; of a mount that does not answer it has the health only.

        --all           all mounts that you may ask
        --output FILE   replace FILE by the text, as node_exporter's textfile
                        collector needs it: a reader finds either text, whole
    """,
    "layers": """
    Lists the layers, topmost first, with what is wrong with them, or changes them.
    'set' replaces all substitutions, '' leaves MAIN alone. Layers are named by
    their paths or the last components of these; PATH@/FOLDER is laid at a folder of
    the mount. 'save' writes the layers and options to the profile NAME, a text in
    ~/.config/bundlefs/profiles; 'load' switches to the layers of one; 'profiles'
    lists them.

        --at FOLDER  lay the layers that 'add' adds at this folder of the mount
        --count      also count the names that each layer contributes
    \(json)
    \(positions)
    """,
    "diff": """
    Lists the entries that the layers override, add and hide, of the whole mount or
    below PATH.

    \(json)
        --html FILE  write one self-contained page to FILE, with small pictures
    """,
    "tree": """
    Lists all entries of the mount, or below PATH, and marks those that are not
    MAIN's.

    \(json)
    """,
    "override": """
    Copies what the mount shows at each PATH to the top layer, ready to be edited; a
    directory with everything in it.
    """,
    "revert": """
    Removes what the top layer has at each PATH, so that what is below shows again.

        --yes        do not ask
    """,
    "apply": """
    Writes what the top layer has, its deletions as well, into MAIN, and empties the
    top layer of it. Without PATH, all is applied.

        --to LAYER   write into this layer instead of MAIN
        --dry-run    print what would be done
        --yes        do not ask
    \(json)
    """,
    "sync": "Waits until all changes completed so far are visible in the mount.",
    "invalidate": """
    Drops cached data, of everything or of each PATH, which is never necessary on
    local layers.
    """,
    "upgrade": "Has the installed program take the mount over; open files stay open.",
    "route": """
    Posts URLs, those on standard input for '-', and prints their results as JSON.

        --before OTHER
                     register the route NAME PATTERN before the first one named OTHER
    """,
    "match": "Prints which route takes each URL, and its values, without posting it.",
    "listen": """
    Prints results as they arrive: all of them, or those posted under a NAME.

        --since SEQUENCE
                     print first the results that follow this number
        --count N    end after N results
        --timeout SECONDS
                     end after this time
        --exec COMMAND [ARGUMENT...]
                     run COMMAND for each result, with the result on its standard input
    """,
    "resources": """
    Lists the resources of the bundle in the preferred language.

        --type EXTENSION
                     only those with this extension
        --localization NAME
                     only those of this localization
    \(json)
    """,
    "open": "Sends URLs to the newest mount, of yours and root's, that accepts them.",
    "ui": """
    Serves a page on 127.0.0.1 that shows in a browser which layer wins, and where
    files are swapped by hand, until Ctrl-C. Prints its address, and opens it where
    there is a display.

        -o OPTION    mount MAIN first with these mount options, see 'bundlefs --help',
                     and unmount at the end
        --port N     serve on this port instead of a free one
        --no-open    do not open a browser
    """,
  ]
}
