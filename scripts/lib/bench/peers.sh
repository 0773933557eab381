# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # The files of the benchmark share variables.
# Mounts, finds and unmounts the file systems to measure. Sourced by scripts/bench.

peer_packages=(archivemount bindfs fuse-overlayfs fuse-zip git mergerfs stress-ng unionfs-fuse zip)
# Union file systems, and bindfs, which has a single layer.
all_peers=(
  native overlayfs bundlefs ${BUNDLEFS_BASELINE:+bundlefs-baseline} bundlefs-xattr-off fuse-overlayfs mergerfs
  mergerfs-tuned unionfs-fuse bindfs
)

# Those whose first touch of a real tree is measured.
real_peers=(native overlayfs bundlefs ${BUNDLEFS_BASELINE:+bundlefs-baseline} fuse-overlayfs)

# Whether the peer has a daemon.
is_fuse() {
  [[ $1 != native && $1 != overlayfs ]]
}

# Whether the peer is installed.
is_installed() {
  case $1 in
    native | bundlefs*) ;;
    overlayfs) ((EUID == 0)) || { have sudo && as_root true 2>/dev/null; } ;;
    mergerfs*) have mergerfs ;;
    *) have "$1" ;;
  esac
}

declare -A absent=()

# Whether the peer is available; prints once that it is not.
has_peer() {
  [[ -z ${absent[$1]-} ]] || return 1
  is_installed "$1" || skip_peer "$1" "it is not installed (--install)"
}

# skip_peer PEER REASON: excludes the peer from the rest of the run, and fails.
skip_peer() {
  progress ''
  absent[$1]=$2
  step "Skipping $1: $2"
  return 1
}

# build_command PEER MAIN SUBSTITUTION MOUNTPOINT: sets command to the mounting command.
build_command() {
  local peer=$1 main=$2 substitution=$3 mountpoint=$4 superuser=()
  local forever=cache.attr=86400,cache.entry=86400,cache.negative_entry=86400
  ((EUID == 0)) || superuser=(sudo -n)
  case $peer in
    bundlefs) command=("$bundlefs" "$main" "$mountpoint" -o "substitution=$substitution") ;;
    bundlefs-baseline) command=("$BUNDLEFS_BASELINE" "$main" "$mountpoint" -o "substitution=$substitution") ;;
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
    # For these MAIN is an archive.
    bundlefs-zip) command=("$bundlefs" "$main" "$mountpoint") ;;
    fuse-zip) command=(fuse-zip -r "$main" "$mountpoint") ;;
  esac
}

mounted=() root='' command=() builder=build_command

# mount_peer PEER MAIN SUBSTITUTION: mounts the peer below ./mounts and sets root to its mount point, which is MAIN for
# native. Prints the reason and fails if it cannot be mounted; for bundlefs itself the benchmark fails.
mount_peer() {
  local peer=$1 main=$2 substitution=$3
  if [[ $peer == native ]]; then
    root=$main
    return
  fi
  root=$work/mounts/$peer
  mkdir -p "$root"
  "$builder" "$peer" "$main" "$substitution" "$root"
  mounted+=("$root")
  # Some peers print messages on success, too; bundlefs only if passthrough is not available.
  "${command[@]}" >messages 2>&1 </dev/null && [[ $peer != bundlefs-passthrough || ! -s messages ]] && return
  local message
  message=$(tail -n 1 messages)
  unmount_all
  [[ $peer != bundlefs && $peer != bundlefs-xattr-off ]] || fail "bundlefs could not be mounted: $message"
  skip_peer "$peer" "it could not be mounted: $message"
}

# Prints the processes that have the mount point among their arguments.
daemons_of() {
  # Listed before grep starts, which has the mount point among its own arguments.
  local lines=(/proc/[0-9]*/cmdline)
  # Some of them may have exited.
  { grep -lszxF -- "$1" "${lines[@]}" || true; } | cut -d / -f 3
}

# Prints the type of the mount without accessing the path, which could hang.
type_of_mount() {
  awk -v path="$1" '$5 == path { for (i = 7; $i != "-"; i++); print $(i + 1) }' /proc/self/mountinfo
}

# Unmounts and waits for the daemon to exit; after five seconds kills it and unmounts lazily.
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

# Prints the processor time of the mount's daemon in nanoseconds, in steps of 10 ms; 0 without a daemon.
daemon_time() {
  local paths
  mapfile -t paths < <(daemons_of "$1")
  paths=("${paths[@]/#//proc/}")
  # The process name, in parentheses, may contain spaces.
  sed 's/.*) //' /dev/null "${paths[@]/%//stat}" | awk -v ticks="$(getconf CLK_TCK)" '
    { sum += $12 + $13 }
    END { printf "%.0f\n", sum * 1e9 / ticks }'
}
