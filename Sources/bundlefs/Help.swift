/// What `-h` prints.
enum Help {
  /// Whether the arguments ask for it.
  static func isWanted(by arguments: some Sequence<[UInt8]>) -> Bool {
    arguments.contains { $0.elementsEqual("-h".utf8) || $0.elementsEqual("--help".utf8) }
  }

  /// The words that begin a command line, unless it mounts.
  static let commands: Set<String> = [
    "unmount", "status", "diff", "tree", "sync", "invalidate", "route", "match", "listen", "resources",
    "open",
  ]

  static let text = """
    usage: bundlefs MAIN MOUNTPOINT [-o OPTION[,OPTION...]] [-f] [-d]
           bundlefs unmount [--lazy] MOUNTPOINT
           bundlefs status MOUNTPOINT [--json]
           bundlefs diff MOUNTPOINT [PATH] [--json]
           bundlefs tree MOUNTPOINT [PATH] [--json]
           bundlefs sync MOUNTPOINT
           bundlefs invalidate MOUNTPOINT [PATH...]
           bundlefs route MOUNTPOINT URL...
           bundlefs match MOUNTPOINT URL...
           bundlefs listen MOUNTPOINT [NAME...] [--since SEQUENCE]
           bundlefs resources MOUNTPOINT [--type EXTENSION] [--localization NAME]
                              [--json]
           bundlefs open URL...

    Mounts a read-only view of the directory MAIN in which files of other
    directories take the place of its own. Edits in any of them show at once.
    Each may be a zip archive instead, or a folder in one: 'app.ipa!/Payload'.

        -o OPTION    mount options, see below
        -f           stay in the foreground; Ctrl-C unmounts
        -d           print every request; stays in the foreground
        -h, --help   print this help
        -V, --version
                     print the version

    'status' shows what is mounted, cached and asked. 'diff' lists what the
    layers override, add and hide, layer by layer; 'tree' lists everything, and
    marks what is not MAIN's. 'sync' returns when every change that was finished
    before is visible; 'invalidate' drops what is cached, which is never needed
    on local layers.

    Lines written to the file .routes in the mount register routes and post
    URLs, see the README: 'route NAME PATTERN', 'unroute NAME', 'reset',
    'match URL', or a URL. 'route' writes URLs and prints what they become,
    'match' without posting them; 'listen' prints results as they come, all or
    those posted under a NAME, and with --since those after that one, too.

    The mount's files are a bundle's resources, too: 'rsrc:///logo.png' in .routes,
    or as a path (cat MOUNTPOINT/rsrc:/logo.png), finds the logo where the bundle
    keeps it, in the right language. 'resources' lists them; 'open' hands a URL
    to the newest mount, of yours and root's, that answers it.

    Options:
        substitution=DIR[:DIR...]
                     directories whose files override MAIN's, the first one
                     first; a ':' or ',' in a name is written '\\:' or '\\,'
        cache=coherent|none|SECONDS
                     how long the kernel keeps what it was told: until it is
                     no longer true (default), not at all, or so long
        cache_size=N how many bytes the unpacked files of zip archives may take;
                     N may end with K, M or G (default: 256M)
        passthrough, passthrough=N
                     have the kernel read files of N bytes (default: 128K) and
                     more by itself, where it can; opening then takes a message
        announce=on|off
                     whether programs that watch the mount (inotify) are told of
                     changes in the folders and archives (default: on)
        xattr=on|off whether extended attributes are served (default: on)
        routes=FILE  routes that are registered from the start; may be repeated
        control=NAME the name of the control file (default: .routes)
        routes_mode=OCTAL
                     its permissions (default: 600); who may write it posts
                     URLs, only the owner of the mount and root change routes
        languages=LANG[:LANG...]
                     the localizations of resources, in order (default: your
                     locale's, the bundle's own, en)
        scale=N, idiom=phone|pad
                     look for the images of such a screen (logo@2x~ipad.png)
        resource_scheme=NAME
                     the scheme of resources' URLs (default: rsrc)
        hide_routes  leave it out of listings; it is there all the same
        allow_other  let all users in (users need user_allow_other in
                     /etc/fuse.conf)
        allow_root   let root in
        auto_unmount unmount also when the daemon is killed
        fsname=NAME  what the mount table shows as the source (default: MAIN)
        max_read=N   the largest read in bytes
        ro, rw, suid, nosuid, dev, nodev, exec, noexec, atime, noatime,
        sync, async, dirsync
                     as for every mount, see mount(8)
    """
}
