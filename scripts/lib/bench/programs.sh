# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # The files of the benchmark share variables.
# The part programs. Sourced by scripts/bench.

# The headers that the compiled units include, as far as the tree has them.
headers=(
  aio arpa/inet assert byteswap complex cpio ctype dirent dlfcn elf endian err errno fcntl fenv fnmatch ftw glob
  grp iconv ifaddrs inttypes langinfo libgen limits link linux/bpf linux/btrfs linux/ethtool linux/fs linux/fuse
  linux/input linux/netlink linux/nl80211 linux/perf_event linux/videodev2 locale malloc math mntent monetary mqueue
  net/if netdb netinet/in netinet/tcp nl_types obstack poll printf pthread pty pwd regex resolv sched search
  semaphore setjmp signal spawn stdatomic stdint stdio stdlib string sys/epoll sys/eventfd sys/file sys/inotify
  sys/ioctl sys/mman sys/mount sys/msg sys/param sys/prctl sys/ptrace sys/quota sys/resource sys/select sys/sem
  sys/sendfile sys/shm sys/signalfd sys/socket sys/stat sys/statvfs sys/syscall sys/sysinfo sys/syslog sys/time
  sys/timerfd sys/uio sys/un sys/utsname sys/wait sys/xattr syslog tar termios tgmath time uchar ucontext ulimit
  unistd utime utmpx wchar wctype wordexp
)

# Sets compile to a command of clang, from PATH or the Swift toolchain, that finds its headers in the tree.
prepare_compiler() {
  local compiler number
  compiler=$(command -v clang) || compiler=$(dirname "$(realpath "$(command -v swift)")")/clang
  compile=(
    "$compiler" -fsyntax-only -w -D_GNU_SOURCE -nostdlibinc -I usr/share -I usr/share/doc -I usr/include/c++
    -isystem "usr/include/$(uname -m)-linux-gnu" -isystem usr/include
  )
  mkdir -p units
  if ! have "$compiler" || ! write_unit; then
    step "Skipping the compiler: clang is missing, or finds no headers in the tree"
    compile=()
    return
  fi
  for number in {1..10}; do
    cp unit.c "units/$number.c"
    compile+=("$work/units/$number.c")
  done
}

# Writes unit.c with every header that compiles together with those before it: the tree lacks the larger ones. Fails if
# there are few.
write_unit() {
  local header count=0
  : >unit.c
  for header in "${headers[@]}"; do
    progress "finding the compiler's headers: $header"
    { cat unit.c && printf '#include <%s.h>\n' "$header"; } >draft.c
    (cd main && "${compile[@]}" "$work/draft.c") >/dev/null 2>&1 || continue
    mv draft.c unit.c
    count=$((count + 1))
  done
  progress ''
  ((count >= 20))
}

prepare_git() {
  have git || {
    step "Skipping git: it is not installed (--install)"
    return
  }
  export GIT_DIR=$work/git GIT_WORK_TREE=. GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_OPTIONAL_LOCKS=0
  git init -q
  # Compare sizes and times only: some peers have unstable inode numbers.
  git config core.checkStat minimal
  git config core.trustctime false
}

# make_index PEER ROOT: makes git's index of a peer, without storing objects.
make_index() {
  [[ -n ${GIT_DIR-} ]] || return 0
  local GIT_INDEX_FILE=$work/index-$1
  export GIT_INDEX_FILE
  progress "making git's index of $1"
  (cd "$2" && git update-index --add --info-only -z --stdin <"$work/files" && git status --porcelain >/dev/null)
}

measure_programs() {
  local peer peers=() compile=()
  make_tree
  step "Programs: rounds over the peers: $few_rounds"
  prepare_compiler
  prepare_git
  for peer in "${all_peers[@]}"; do
    has_peer "$peer" || continue
    mount_peer "$peer" "$work/main" "$work/substitution" || continue
    peers+=("$peer")
    progress "warming $peer"
    measure pass "$root" list "$work/folders" stat "$work/files" read "$work/files"
    measure run "$root" ls -lR
    ((!${#compile[@]})) || measure run "$root" "${compile[@]}"
    make_index "$peer" "$root"
  done
  in_rounds Programs "$few_rounds" programs_round "${peers[@]}"
  unset GIT_DIR GIT_WORK_TREE GIT_CONFIG_GLOBAL GIT_CONFIG_NOSYSTEM GIT_OPTIONAL_LOCKS GIT_INDEX_FILE
  unmount_all
}

programs_round() {
  local peer=$1 root=$work/mounts/$1
  [[ $peer != native ]] || root=$work/main
  # The kernel may have evicted unused files since the last round.
  measure run "$root" ls -lR
  time_of programs "$peer" ls run "$root" ls -lR
  measure grep "$root"
  # tar does not read files if its output is /dev/null itself.
  time_of programs "$peer" tar run "$root" sh -c 'tar -cf - . | cat'
  if [[ -n ${GIT_DIR-} ]]; then
    export GIT_INDEX_FILE=$work/index-$peer
    time_of programs "$peer" git run "$root" git status --porcelain
  fi
  ((!${#compile[@]})) || time_of programs "$peer" clang run "$root" "${compile[@]}"
}
