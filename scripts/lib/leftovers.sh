# shellcheck shell=bash
# What a run of the tests leaves behind: mounts, processes, temporary files. Sourced by scripts/test.
#
# Several users' runs may share a machine, and its owner may have bundles mounted, so only what is this run's
# counts: what is below its own folder ($run, the tests' TMPDIR), processes with BUNDLEFS_TEST_RUN=$run in
# their environment, and what was not there before and has no owner now: folders of test processes that are
# gone, bundlefs mounts whose daemon is.

begin_run() {
  await_other_runs
  run=$(mktemp -d "${TMPDIR:-/tmp}/bundlefs-test.XXXXXX")
  # Tests act as other users, too.
  chmod 755 "$run"
  export TMPDIR=$run BUNDLEFS_TEST_RUN=$run
  mounts_before=$(bundlefs_mounts)
  folders_before=$(orphaned_folders)
}

# Run by root, tests change what the kernel allows each user to watch, and put back what they found: two such
# runs at once would put back each other's. Who comes second waits until the first one's last process is gone.
await_other_runs() {
  local limit=/proc/sys/fs/inotify/max_user_watches turn
  ((EUID == 0)) || return 0
  exec {turn}<"$limit"
  flock --nonblock "$turn" && return
  step "Another run of the tests is under way on this machine: waiting for its end"
  flock --timeout 7200 "$turn" || fail "after two hours there still are processes of the other run: end them"
}

# Whether the lines in the first argument have the second.
has_line() {
  [[ $'\n'$1$'\n' == *$'\n'"$2"$'\n'* ]]
}

# The folders that tests make, /tmp/bundlefs-tests.PID.…, of processes that are gone.
orphaned_folders() {
  local folder pid
  for folder in /tmp/bundlefs-tests.*; do
    pid=${folder#/tmp/bundlefs-tests.}
    pid=${pid%%.*}
    [[ $pid =~ ^[0-9]+$ && ! -e /proc/$pid ]] || continue
    printf '%s\n' "$folder"
  done
}

left_folders() {
  local folder
  while IFS= read -r folder; do
    has_line "$folders_before" "$folder" || printf '%s\n' "$folder"
  done < <(orphaned_folders)
}

# Where anything is mounted of the types that match, the last mounted first. Odd characters in the paths
# stay as they are in mountinfo: \040 and the like.
mounts() {
  awk -v type="$1" '{ for (i = 7; $i != "-"; i++); if ($(i + 1) ~ type) print $5 }' /proc/self/mountinfo | tac
}

bundlefs_mounts() {
  mounts '^fuse[.]bundlefs$|^bundlefs$'
}

plain_path() {
  printf '%b' "${1//\\/\\0}"
}

# A mount whose daemon is gone says so, one whose daemon hangs says nothing; that of another user, who
# denies us a look, is neither.
is_dead() {
  local text status=0
  text=$(timeout --signal=KILL 5 stat "$(plain_path "$1")" 2>&1) || status=$?
  ((status == 137)) || [[ $text == *'endpoint is not connected'* ]]
}

left_mounts() {
  local path folders
  folders=$run$'\n'$(left_folders)
  while IFS= read -r path; do
    ! is_below "$path" "$folders" || printf '%s\n' "$path"
  done < <(mounts .)
  while IFS= read -r path; do
    # Other runs look after themselves.
    [[ $path != */bundlefs-test?(s).*/* ]] || continue
    has_line "$mounts_before" "$path" || ! is_dead "$path" || printf '%s\n' "$path"
  done < <(bundlefs_mounts)
}

# Whether the path lies below one of the folders, which are lines.
is_below() {
  local folder
  while IFS= read -r folder; do
    [[ -z $folder || $1 != "$folder"/* ]] || return 0
  done <<<"$2"
  return 1
}

# This shell was started without the variable, so it and its subshells are not among them.
left_processes() {
  local folder
  for folder in /proc/[0-9]*; do
    ! grep -qzxF "BUNDLEFS_TEST_RUN=$run" "$folder/environ" 2>/dev/null || printf '%s\n' "${folder#/proc/}"
  done
}

# Swift's package manager never removes its own locks and folders; they go with the run's folder.
left_files() {
  find "$run" -mindepth 1 -maxdepth 1 ! -name 'TemporaryDirectory.*' ! -name '*.lock' \
    ! -name swift-generated-sources
  left_folders
}

describe_leftovers() {
  local item
  while IFS= read -r item; do
    printf 'left mounted: %s\n' "$item"
  done < <(left_mounts)
  while IFS= read -r item; do
    printf 'left running: %s %s\n' "$item" "$(tr '\0' ' ' 2>/dev/null <"/proc/$item/cmdline")"
  done < <(left_processes)
  while IFS= read -r item; do
    printf 'left in place: %s\n' "$item"
  done < <(left_files)
}

# A daemon may still be on its way out: it has five seconds.
settled_leftovers() {
  local text
  for _ in {1..25}; do
    text=$(describe_leftovers)
    [[ -n $text ]] || return 0
    sleep 0.2
  done
  printf '%s\n' "$text"
}

# Daemons first: with its daemon dead no mount can hang whoever removes it.
remove_leftovers() {
  local item
  while IFS= read -r item; do
    kill -KILL "$item" 2>/dev/null || true
  done < <(left_processes)
  while IFS= read -r item; do
    item=$(plain_path "$item")
    umount -l "$item" 2>/dev/null || fusermount3 -u -z "$item" || true
  done < <(left_mounts)
  while IFS= read -r item; do
    rm -rf --one-file-system "$item"
  done < <(left_folders)
  rm -rf --one-file-system "$run"
}

# Fails, saying what, if this run left anything; removes it in any case.
leave_nothing() {
  local text
  text=$(settled_leftovers)
  remove_leftovers
  [[ -n $text ]] || return 0
  printf '%s\n' "$text" >&2
  return 1
}
