enum Help {
  static func isRequested(by arguments: [[UInt8]]) -> Bool {
    arguments.contains { $0.elementsEqual("-h".utf8) || $0.elementsEqual("--help".utf8) }
  }

  /// The subcommands; any other first argument is MAIN.
  static let commands: Set<String> = [
    "unmount", "run", "list", "status", "health", "metrics", "layers", "diff", "tree", "override", "revert",
    "apply",
    "sync",
    "invalidate", "upgrade", "route", "match", "listen", "resources", "open", "ui",
  ]

  static let text = """
    usage: bundlefs MAIN MOUNTPOINT [-o OPTION[,OPTION...]] [-f] [-d]
           bundlefs unmount [--lazy] MOUNTPOINT
           bundlefs unmount [--lazy] --all
           bundlefs run [-o OPTION[,OPTION...]] [--at DIR] MAIN -- COMMAND
                        [ARGUMENT...]
           bundlefs list [--json]
           bundlefs status MOUNTPOINT [--json]
           bundlefs health MOUNTPOINT...|--all [--json]
           bundlefs metrics MOUNTPOINT...|--all [--output FILE]
           bundlefs layers MOUNTPOINT [--count] [--json]
           bundlefs layers MOUNTPOINT set LAYER[:LAYER...]
           bundlefs layers MOUNTPOINT add LAYER... [--at FOLDER] [POSITION]
           bundlefs layers MOUNTPOINT remove LAYER...
           bundlefs layers MOUNTPOINT move LAYER POSITION
           bundlefs layers MOUNTPOINT save|load NAME
           bundlefs layers MOUNTPOINT profiles [--json]
           bundlefs diff MOUNTPOINT [PATH] [--json|--html FILE]
           bundlefs tree MOUNTPOINT [PATH] [--json]
           bundlefs override MOUNTPOINT PATH...
           bundlefs revert MOUNTPOINT PATH... [--yes]
           bundlefs apply MOUNTPOINT [PATH...] [--to LAYER] [--dry-run] [--yes]
                          [--json]
           bundlefs sync MOUNTPOINT
           bundlefs invalidate MOUNTPOINT [PATH...]
           bundlefs upgrade MOUNTPOINT
           bundlefs route MOUNTPOINT URL...|-
           bundlefs route MOUNTPOINT --before OTHER NAME PATTERN
           bundlefs match MOUNTPOINT URL...|-
           bundlefs listen MOUNTPOINT [NAME...] [--since SEQUENCE] [--count N]
                           [--timeout SECONDS] [--exec COMMAND [ARGUMENT...]]
           bundlefs resources MOUNTPOINT [--type EXTENSION] [--localization NAME]
                              [--json]
           bundlefs open URL...
           bundlefs ui MOUNTPOINT... [--port N] [--no-open]
           bundlefs ui MAIN -o OPTION[,OPTION...] [--port N] [--no-open]
           bundlefs COMMAND --help

    Mounts a view of the directory MAIN in which files of other directories,
    the substitutions, override those of MAIN. Changes in any of these
    directories are visible at once. The view is read-only without 'writable'. Instead of a directory, each can be a
    zip, tar, 7z or other archive or a directory in one: 'app.ipa!/Payload'.
    'mod.zip@/Data' lies at the folder Data of the view instead of its root.

        -o OPTION    mount options, see below
        -f           stay in the foreground; Ctrl-C unmounts
        -d           print every request; implies -f
        -h, --help   print this help
        -V, --version
                     print the versions of bundlefs, libfuse and
                     Linux

    'layers' lists the layers, topmost first, with what is wrong with them; with
    --count also how many names each contributes. 'set' replaces all
    substitutions, '' leaves MAIN alone; 'add', 'remove' and 'move' change some of
    them, named by their paths or the last components of these. A POSITION is
    --top (default of 'add'), --bottom, --above LAYER or --below LAYER. 'add --at
    FOLDER' lays the layers at a folder of the mount. When the command returns,
    every program sees the new layers. 'save' saves the layers and options as a
    profile, for 'load' and the option profile=NAME; 'profiles' lists them.

    'run' mounts over MAIN, or DIR, for COMMAND and its children only: no other
    program sees the mount, and it goes with the last of them. The exit status is
    COMMAND's; 125, 126 and 127 are those of env(1).

    'list' prints all bundlefs mounts that you may see, also those in other mount
    namespaces, with their layers, state and user. 'unmount --all' unmounts yours.

    'status' shows the layers, the caches and request counts. 'health' exits
    with 0 for healthy mounts, with 1 for degraded ones and 2 for dead ones, and
    prints what is wrong. 'metrics' prints their counters for Prometheus.
    MOUNTPOINT can be any path in the mount for these.
    'diff' lists the entries that the layers override, add and hide; 'tree'
    lists all entries and marks those that are not MAIN's. 'override' copies
    what the mount shows at a PATH to the top layer, ready to be edited;
    'revert' removes what the top layer has there, so that what is below shows
    again, and asks first unless --yes is given. 'apply' writes what the top
    layer has, its deletions as well, into MAIN or LAYER and empties the top
    layer of it; the mount shows the same as before. All three take directories,
    and work on read-only mounts, too. 'sync' waits until all changes completed
    so far are visible. 'invalidate' drops cached data, which is never necessary
    on local layers. 'upgrade' has the installed program take the mount over.

    Lines written to the file .routes in the mount register routes and post
    URLs: 'route NAME PATTERN', 'unroute NAME', 'reset', 'match URL', or a URL;
    see bundlefs-routes(5). 'route' writes URLs, those on standard input for '-',
    and prints their results; 'match' does so without posting them. With
    --before, 'route' registers a route before the first one named OTHER. 'listen'
    prints results as they arrive: all of them, or those posted under a NAME;
    with --since, first the ones that follow that SEQUENCE number. It ends after
    --count results or --timeout seconds. --exec runs a command for each instead,
    with the result on its standard input and in BUNDLEFS_... variables.

    The files in the mount are the resources of a bundle: the URL
    'rsrc:///logo.png', or the path MOUNTPOINT/rsrc:/logo.png, finds the logo in
    the preferred language. 'resources' lists them. 'open' sends a URL to the
    newest mount, of yours and root's, that accepts it.

    'ui' shows mounts in a browser: which layer wins, what the others have, and what
    changes. Files are swapped there by hand, and each change can be undone. With
    -o it mounts MAIN first, and unmounts at the end.

    Options:
        substitution=DIR[:DIR...]
                     directories that override MAIN, in descending order of
                     precedence; write ':' and ',' in a name as '\\:' and '\\,';
                     none if empty
        profile=NAME the options of a profile that 'layers' has saved
        writable, writable=DIR
                     take changes; they go to the first substitution, or to DIR
                     above all of them
        trust_upper  trust users who may write to that directory as the mount's
                     owner: without it, root's mounts with allow_other refuse one
                     that others may write to
        workdir=DIR  make the work folder of that directory in DIR, of the same
                     mount, instead of in it
        lowerdir=DIR[:DIR...], upperdir=DIR
                     the layers as fuse-overlayfs and overlayfs take them, before a
                     MOUNTPOINT alone: the first is on top, and upperdir, which
                     needs workdir, takes changes; the mount adds nothing to them
        rename_copy=N
                     how many bytes may be copied to rename a directory of a
                     layer below, else EXDEV (default: 256M; 0: none)
        cache=coherent|none|SECONDS
                     how long the kernel caches entries and data: until they
                     change (default), not at all, or for a time
        cache_size=N memory for decompressed files of archives, in bytes;
                     suffixes K, M and G (default: 256M)
        archive_encoding=NAME
                     the encoding of names in zip archives that are not flagged
                     as UTF-8: cp866, shift_jis, gbk, ... (default: a guess)
        archive_password_file=FILE
                     passwords of encrypted archive entries, one per line
        http_cache=DIR
                     the folder with what was read of layers that are URLs
                     (default: bundlefs in the user's cache folder)
        http_cache_size=N
                     the space for it (default: 1G)
        http_headers_file=FILE
                     headers for servers, such as a token: NAME: VALUE in each
                     line, [HOST] before those for one host alone
        http_refresh=SECONDS
                     how often servers are asked for changes (default: 60)
        passthrough, passthrough=N
                     let the kernel read files of at least N bytes (default:
                     128K) directly if possible, and with 'writable' write
                     those of the top layer; each open is then a request
        announce=on|off
                     whether changes in the layers are reported to programs that
                     watch the mount with inotify (default: on)
        whiteouts=auto|devices|markers
                     how a writable layer hides what is below: by devices 0:0, by
                     files .wh.NAME, or (default) as it does already
        xattr=on|off|listed|layers
                     whether extended attributes are served (default: on); listed:
                     listings of attributes show the mount's own, too; layers:
                     there are none of the mount's own
        routes=FILE  register the routes in FILE at start; may be repeated
        control=NAME the name of the control file (default: .routes); control=none
                     leaves it out, and what takes commands by it: route, listen,
                     sync, invalidate, layers
        results=N    how many results it keeps (default: 1024)
        routes_mode=OCTAL
                     its permissions (default: 600); users with write permission
                     can post URLs, only the mount's owner and root can change
                     routes
        languages=LANG[:LANG...]
                     preferred languages of resources, in order (default:
                     those of your locale, the bundle's own, en)
        scale=N, idiom=phone|pad
                     prefer images for such a screen (logo@2x~ipad.png)
        resource_scheme=NAME
                     the scheme of resource URLs (default: rsrc); none: no such URLs
        list_routes  show the control file in listings
        allow_other  allow all users (requires user_allow_other in
                     /etc/fuse.conf unless you are root)
        allow_root   allow root
        auto_unmount unmount even if the daemon is killed
        nonempty     cover a MOUNTPOINT that has files although MAIN is empty, which is
                     otherwise taken for exchanged arguments
        fsname=NAME  the source shown in the mount table (default: MAIN)
        max_read=N   the maximum size of a read request, in bytes
        layer_timeout=SECONDS
                     how long a request waits for a layer that does not
                     answer, before EIO; default: 30 for layers on FUSE and
                     remote file systems, no limit for others
        layer_timeout_action=error|skip
                     skip: after that time answer as if the layer were empty
        case=sensitive|insensitive
                     insensitive: names are compared without case, and composed
                     characters with decomposed ones
        strings=override|merge
                     merge: tables of strings (NAME.strings) that several layers
                     have, and string catalogs (NAME.xcstrings), are merged key
                     by key; with writable, what differs is saved
        hide=GLOB[:GLOB...]
                     names that no layer shows: in all folders, or with a slash the
                     path from the mount's root; *, ?, [...], and ** for any depth
        mtime=file|visible[:FILE]
                     visible: show as a file's modification time the moment when this
                     version became the visible one, if that is later; FILE, an
                     absolute path, keeps these times
        owners=archive|mounter
                     archive: entries of archives have the owners, attributes and
                     modes of the archive; set-user-ID bits with suid, and devices
                     with dev, in root's mounts only (default: mounter)
        uid=N, gid=N, squash_to_uid=N, squash_to_gid=N, squash_to_root
                     show this owner, this group, or root as both, of every entry;
                     not with writable or strings=merge, like the next two
        umask=OCTAL  clear these permission bits of every entry
        uidmapping=HOST:CONTAINER:COUNT[:...], gidmapping=...
                     show the owners from HOST on as those from CONTAINER on, and
                     all others as 65534
        log=auto|journal|syslog|stderr|FILE
                     where the daemon's messages go (default: auto, the journal, else
                     syslog, else nowhere); FILE is an absolute path
        missing=empty|error
                     empty: substitutions that do not exist may come later
        survive=on|off
                     whether the mount outlives the death of the process that
                     answers requests (default: on)
        watchdog=SECONDS|off
                     after how long a worker process that hangs is replaced
                     (default: 30)
        low_latency  keep idle processors awake during bursts of requests; root only,
                     affects the whole machine
        ro, rw, suid, nosuid, dev, nodev, exec, noexec, atime, noatime,
        sync, async, dirsync
                     standard mount options, see mount(8)
    """
}
