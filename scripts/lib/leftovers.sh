# shellcheck shell=bash
# Finds and removes mounts, processes and temporary files that a test run left behind. Sourced by scripts/test and
# scripts/soak.
#
# Several runs may share a machine, which may also have other bundles mounted. Counted as leftovers of this run are
# only: what is below its directory ($run, the tests' TMPDIR), processes with BUNDLEFS_TEST_RUN=$run in their
# environment, and what is new and orphaned: directories of test processes that are gone, mounts without a daemon.

start_run() {
  wait_for_other_runs
  run=$(mktemp -d "${TMPDIR:-/tmp}/bundlefs-test.XXXXXX")
  # Some tests act as other users.
  chmod 755 "$run"
  export TMPDIR=$run BUNDLEFS_TEST_RUN=$run
  mounts_before=$(bundlefs_mounts)
  folders_before=$(orphaned_folders)
  # Shells in other mount namespaces look for leftovers, too.
  export run mounts_before folders_before
}

# Tests run by root change the inotify limits and restore them afterwards; two runs at once would restore each other's
# values. The second run waits until the last process of the first is gone.
wait_for_other_runs() {
  local limit=/proc/sys/fs/inotify/max_user_watches turn
  ((EUID == 0)) || return 0
  exec {turn}<"$limit"
  flock --nonblock "$turn" && return
  step "Waiting for another test run on this machine"
  flock --timeout 7200 "$turn" || fail "processes of the other run still exist after two hours: kill them"
}

# has_line LINES LINE: whether LINE is one of LINES.
has_line() {
  [[ $'\n'$1$'\n' == *$'\n'"$2"$'\n'* ]]
}

# Prints the tests' directories, /tmp/bundlefs-tests.PID.…, whose process is gone.
orphaned_folders() {
  local folder pid
  for folder in /tmp/bundlefs-tests.*; do
    pid=${folder#/tmp/bundlefs-tests.}
    pid=${pid%%.*}
    [[ $pid =~ ^[0-9]+$ && ! -e /proc/$pid ]] || continue
    printf '%s\n' "$folder"
  done
}

leftover_folders() {
  local folder
  while IFS= read -r folder; do
    has_line "$folders_before" "$folder" || printf '%s\n' "$folder"
  done < <(orphaned_folders)
}

# Prints the mount points of the types that match, the last mounted first, with characters escaped as in mountinfo
# (\040).
mounts() {
  awk -v type="$1" '{ for (i = 7; $i != "-"; i++); if ($(i + 1) ~ type) print $5 }' /proc/self/mountinfo | tac
}

bundlefs_mounts() {
  mounts '^fuse[.]bundlefs$|^bundlefs$'
}

plain_path() {
  printf '%b' "${1//\\/\\0}"
}

# Whether the daemon of a mount is gone (ENOTCONN) or hangs (timeout). EACCES, from another user's mount, is neither.
is_dead() {
  local text status=0
  text=$(timeout --signal=KILL 5 stat "$(plain_path "$1")" 2>&1) || status=$?
  ((status == 137)) || [[ $text == *'endpoint is not connected'* ]]
}

leftover_mounts() {
  local path folders
  folders=$run$'\n'$(leftover_folders)
  while IFS= read -r path; do
    ! is_below "$path" "$folders" || printf '%s\n' "$path"
  done < <(mounts .)
  while IFS= read -r path; do
    # Other runs check their own.
    [[ $path != */bundlefs-test?(s).*/* ]] || continue
    has_line "$mounts_before" "$path" || ! is_dead "$path" || printf '%s\n' "$path"
  done < <(bundlefs_mounts)
}

# is_below PATH FOLDERS: whether PATH is below one of the directories, which are lines.
is_below() {
  local folder
  while IFS= read -r folder; do
    [[ -z $folder || $1 != "$folder"/* ]] || return 0
  done <<<"$2"
  return 1
}

# This shell was started without the variable, so it and its subshells are not listed.
leftover_processes() {
  local folder
  for folder in /proc/[0-9]*; do
    ! grep -qzxF "BUNDLEFS_TEST_RUN=$run" "$folder/environ" 2>/dev/null || printf '%s\n' "${folder#/proc/}"
  done
}

# Swift's package manager never removes its own locks and directories; they are deleted with the run's directory.
leftover_files() {
  find "$run" -mindepth 1 -maxdepth 1 ! -name 'TemporaryDirectory.*' ! -name '*.lock' \
    ! -name swift-generated-sources
  leftover_folders
}

describe_leftovers() {
  local item
  while IFS= read -r item; do
    printf 'leftover mount: %s\n' "$item"
  done < <(leftover_mounts)
  while IFS= read -r item; do
    printf 'leftover process: %s %s\n' "$item" "$(tr '\0' ' ' 2>/dev/null <"/proc/$item/cmdline")"
  done < <(leftover_processes)
  while IFS= read -r item; do
    printf 'leftover file: %s\n' "$item"
  done < <(leftover_files)
}

# Prints the leftovers that remain after five seconds, in which daemons may exit.
remaining_leftovers() {
  local text
  for _ in {1..25}; do
    text=$(describe_leftovers)
    [[ -n $text ]] || return 0
    sleep 0.2
  done
  printf '%s\n' "$text"
}

# Kills daemons first: a mount without a daemon cannot hang the commands that remove it.
remove_leftovers() {
  local item
  while IFS= read -r item; do
    kill -KILL "$item" 2>/dev/null || true
  done < <(leftover_processes)
  while IFS= read -r item; do
    item=$(plain_path "$item")
    umount -l "$item" 2>/dev/null || fusermount3 -u -z "$item" || true
  done < <(leftover_mounts)
  while IFS= read -r item; do
    rm -rf --one-file-system "$item"
  done < <(leftover_folders)
  rm -rf --one-file-system "$run"
}

# Removes all leftovers; prints them and fails if there were any.
check_leftovers() {
  local text
  text=$(remaining_leftovers)
  remove_leftovers
  [[ -n $text ]] || return 0
  printf '%s\n' "$text" >&2
  return 1
}
