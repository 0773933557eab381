# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # What is set here is used elsewhere in the benchmark, and the other way round.
# The file systems that are measured: how they are mounted, found and unmounted. Sourced by scripts/bench.

peer_packages=(archivemount bindfs fuse-overlayfs fuse-zip git mergerfs unionfs-fuse zip)
# All who lay one directory over another, and bindfs, which only shows one.
all_peers=(
  native overlayfs bundlefs bundlefs-xattr-off fuse-overlayfs mergerfs mergerfs-tuned unionfs-fuse bindfs
)

# Who has no mount of the kernel's own, but a daemon.
is_fuse() {
  [[ $1 != native && $1 != overlayfs ]]
}

# Whether what the peer needs is installed.
is_installed() {
  case $1 in
    native | bundlefs*) ;;
    overlayfs) ((EUID == 0)) || { have sudo && as_root true 2>/dev/null; } ;;
    mergerfs*) have mergerfs ;;
    *) have "$1" ;;
  esac
}

declare -A absent=()

# Whether the peer can be had here; says once that it cannot.
has_peer() {
  [[ -z ${absent[$1]-} ]] || return 1
  is_installed "$1" || leave_out "$1" "it is not installed (--install)"
}

# Never again asks for the peer.
leave_out() {
  progress ''
  absent[$1]=$2
  step "Without $1: $2"
  return 1
}

# Sets command to what mounts the peer of that name on two layers.
command_of() {
  local peer=$1 main=$2 substitution=$3 mountpoint=$4 superuser=()
  local forever=cache.attr=86400,cache.entry=86400,cache.negative_entry=86400
  ((EUID == 0)) || superuser=(sudo -n)
  case $peer in
    bundlefs) command=("$bundlefs" "$main" "$mountpoint" -o "substitution=$substitution") ;;
    bundlefs-xattr-off) command=("$bundlefs" "$main" "$mountpoint" -o "substitution=$substitution,xattr=off") ;;
    bundlefs-passthrough) command=("$bundlefs" "$main" "$mountpoint" -o "substitution=$substitution,passthrough") ;;
    overlayfs)
      command=("${superuser[@]}" mount -t overlay -o "ro,lowerdir=$substitution:$main" overlay "$mountpoint")
      ;;
    fuse-overlayfs) command=(fuse-overlayfs -o "lowerdir=$substitution:$main" "$mountpoint") ;;
    mergerfs) command=(mergerfs "$substitution:$main" "$mountpoint") ;;
    mergerfs-tuned)
      command=(
        mergerfs -o "$forever,cache.readdir=true,cache.symlinks=true,cache.files=full"
        "$substitution:$main" "$mountpoint"
      )
      ;;
    unionfs-fuse) command=(unionfs-fuse "$substitution=RO:$main=RO" "$mountpoint") ;;
    bindfs) command=(bindfs -r "$main" "$mountpoint") ;;
    # Of these MAIN is an archive.
    bundlefs-zip) command=("$bundlefs" "$main" "$mountpoint") ;;
    fuse-zip) command=(fuse-zip -r "$main" "$mountpoint") ;;
  esac
}

mounted=() root='' command=()

# Mounts the peer on two layers below ./mounts, and sets root to where it is; for native that is main itself.
# Fails, saying why, if it cannot be mounted: bundlefs always can.
open_peer() {
  local peer=$1 main=$2 substitution=$3
  if [[ $peer == native ]]; then
    root=$main
    return
  fi
  root=$work/mounts/$peer
  mkdir -p "$root"
  command_of "$peer" "$main" "$substitution" "$root"
  mounted+=("$root")
  # Some talk on success, too; bundlefs does so only where passthrough cannot be had.
  "${command[@]}" >messages 2>&1 </dev/null && [[ $peer != bundlefs-passthrough || ! -s messages ]] && return
  local message
  message=$(tail -n 1 messages)
  unmount_all
  [[ $peer != bundlefs && $peer != bundlefs-xattr-off ]] || fail "bundlefs could not be mounted: $message"
  leave_out "$peer" "it could not be mounted: $message"
}

# The processes that serve the mount: they have the mount point among their arguments, as it was given.
daemons_of() {
  # Listed before grep starts, which has the mount point among its own arguments.
  local lines=(/proc/[0-9]*/cmdline)
  # Some of them are gone by now.
  { grep -lszxF -- "$1" "${lines[@]}" || true; } | cut -d / -f 3
}

# What is mounted there; the path is not touched, which a mount may not survive or not answer.
type_of_mount() {
  awk -v path="$1" '$5 == path { for (i = 7; $i != "-"; i++); print $(i + 1) }' /proc/self/mountinfo
}

# Unmounts, and waits for the daemon's end; both are helped along if they have not come in five seconds.
unmount_peer() {
  local mountpoint=$1 type pid
  for _ in {1..250}; do
    type=$(type_of_mount "$mountpoint")
    case $type in
      '') [[ -n $(daemons_of "$mountpoint") ]] || return 0 ;;
      overlay) as_root umount -- "$mountpoint" 2>/dev/null && return ;;
      *) timeout 5 fusermount3 -u -- "$mountpoint" 2>/dev/null && continue ;;
    esac
    sleep 0.02
  done
  for pid in $(daemons_of "$mountpoint"); do
    kill -KILL "$pid" 2>/dev/null || true
  done
  case $type in
    '') ;;
    overlay) as_root umount -l -- "$mountpoint" ;;
    *) fusermount3 -u -z -- "$mountpoint" ;;
  esac
}

unmount_all() {
  local mountpoint
  for mountpoint in "${mounted[@]}"; do
    unmount_peer "$mountpoint"
  done
  mounted=()
}

# Kilobytes of its own memory that the process has.
own_memory() {
  awk '$1 == "RssAnon:" { print $2 }' "/proc/$1/status"
}

# Nanoseconds of the processor that the mount's daemon has taken, in steps of ten milliseconds; 0 without one.
daemon_time() {
  local pid
  pid=$(daemons_of "$1" | head -n 1)
  if [[ -z $pid ]]; then
    printf '0\n'
    return
  fi
  # The name, in parentheses, may have spaces.
  sed 's/.*) //' "/proc/$pid/stat" | awk -v ticks="$(getconf CLK_TCK)" '{ printf "%.0f\n", ($12 + $13) * 1e9 / ticks }'
}
