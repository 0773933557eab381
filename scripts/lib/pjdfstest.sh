#!/bin/bash
# Runs pjdfstest, whose source folder is given, on a writable mount and on kernel overlayfs over the same ext4, and prints
# how many of its checks pass on each, and which fail on the mount alone.
#
#   scripts/lib/pjdfstest.sh SOURCE [TEST...]
#
# A TEST is a file or folder below SOURCE/tests; all are run without any. Needs root.
# PJDFSTEST_OPTIONS has further options of the mount, such as "passthrough".
set -euo pipefail

[ $# -ge 1 ] || { echo "usage: pjdfstest.sh SOURCE [TEST...]" >&2; exit 2; }
source=$(realpath "$1")
shift
root=$(cd "$(dirname "$0")/../.." && pwd)
bundlefs=${BUNDLEFS_BINARY:-$root/.build/static/release/bundlefs}
work=$(mktemp -d)

finish() {
  cd /
  umount -l "$work/ours" "$work/overlay" 2>/dev/null || true
  umount -l "$work/disk" 2>/dev/null || true
  rm -rf --one-file-system "$work"
}
trap finish EXIT

# What configure would find on Linux.
functions=(FACCESSAT FCHMODAT FCHOWNAT FSTATAT LINKAT MKDIRAT MKFIFOAT MKNODAT OPENAT READLINKAT RENAMEAT SYMLINKAT
  UNLINKAT UTIMENSAT POSIX_FALLOCATE STRUCT_STAT_ST_ATIM STRUCT_STAT_ST_CTIM STRUCT_STAT_ST_MTIM SYS_SYSMACROS_H)
cp -r "$source/tests" "$work/tests"
touch "$work/config.h"
gcc -w -D_GNU_SOURCE -I"$work" "${functions[@]/#/-DHAVE_}" -o "$work/pjdfstest" "$source/pjdfstest.c"

truncate -s 2G "$work/image"
mkfs.ext4 -q "$work/image"
mkdir "$work/disk" "$work/ours" "$work/overlay"
mount -o loop "$work/image" "$work/disk"
mkdir "$work/disk"/{main,upper,over,work}

# run NAME FOLDER TEST...: prints what prove says; the checks go to NAME.log.
run() {
  local name=$1 folder=$2
  shift 2
  (cd "$folder" && prove -rv "$@" </dev/null) >"$work/$name.log" 2>&1 || true
  awk '/\.t \.\./ { file = $1 } /^(not )?ok [0-9]/ && !/# TODO/ { sub(/^.*tests\//, "", file)
    n = ($1 == "ok") ? $2 : $3; print ($1 == "ok" ? "ok" : "not-ok"), file ":" n }' "$work/$name.log" | sort >"$work/$name.all"
  grep '^not-ok' "$work/$name.all" | cut -d' ' -f2 >"$work/$name.failed" || true
  echo "$name: $(grep -c '^ok' "$work/$name.all") of $(wc -l <"$work/$name.all") checks pass"
}

tests=()
for test in "${@:-}"; do tests+=("$work/tests/$test"); done
mount -t overlay overlay -o "lowerdir=$work/disk/main,upperdir=$work/disk/over,workdir=$work/disk/work" "$work/overlay"
run overlayfs "$work/overlay" "${tests[@]}"
"$bundlefs" "$work/disk/main" "$work/ours" -o "substitution=$work/disk/upper,writable,allow_other,dev,suid${PJDFSTEST_OPTIONS:+,$PJDFSTEST_OPTIONS}"
run bundlefs "$work/ours" "${tests[@]}"
echo "fail on bundlefs alone:"
comm -13 "$work/overlayfs.failed" "$work/bundlefs.failed" | while read -r check; do
  echo "  $check"
done
[ -z "${PJDFSTEST_LOGS:-}" ] || cp "$work"/*.log "$PJDFSTEST_LOGS"/
