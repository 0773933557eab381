#!/bin/bash
# Runs fsx and fsstress of xfstests, whose source folder is given, on a writable mount over ext4. Afterwards the mount
# must show what kernel overlayfs shows of the same layers, and MAIN must be unchanged.
#
#   scripts/lib/xfstests.sh SOURCE [FSX-OPERATIONS [FSSTRESS-OPERATIONS [SEED]]]
#
# The default is 1,000,000 operations of fsx, with mappings, and 20,000 for each of four processes of fsstress. Needs
# root, gcc, xfslibs-dev and uuid-dev.
set -euo pipefail

[ $# -ge 1 ] || { echo "usage: xfstests.sh SOURCE [FSX-OPERATIONS [FSSTRESS-OPERATIONS [SEED]]]" >&2; exit 2; }
source=$(realpath "$1")
operations=${2:-1000000} stress=${3:-20000} seed=${4:-1}
root=$(cd "$(dirname "$0")/../.." && pwd)
bundlefs=${BUNDLEFS_BINARY:-$root/.build/static/release/bundlefs}
work=$(mktemp -d)

finish() {
  cd /
  umount -l "$work/mount" "$work/overlay" 2>/dev/null || true
  umount -l "$work/disk" 2>/dev/null || true
  rm -rf --one-file-system "$work"
}
trap finish EXIT

# What configure would find on Linux.
headers=(XFS_XFS SYS_TYPES SYS_STAT SYS_STATVFS SYS_TIME SYS_IOCTL SYS_WAIT MALLOC DIRENT STDLIB UNISTD ERRNO STRING
  SYS_FCNTL FCNTL TIME WAIT SYS_PARAM LIBGEN ASSERT STRINGS LINUX_FALLOC SYS_MMAN FTW SYS_PRCTL INTTYPES)
{
  printf '#define HAVE_%s_H 1\n' "${headers[@]}"
  printf '#define %s 1\n' STDC_HEADERS HAVE_FALLOCATE HAVE_RENAMEAT2 NEED_INTERNAL_XFS_IOC_EXCHANGE_RANGE
  printf '#include <%s>\n' stdio.h getopt.h time.h sys/xattr.h
} >"$work/config.h"
build() {
  gcc -w -D_GNU_SOURCE -DFALLOCATE -I"$work" -I"$source/include" -I"$source/src" -o "$work/$1" "${@:2}"
}
build fsx "$source/ltp/fsx.c"
build fsstress "$source/ltp/fsstress.c" "$source/lib/random.c"

truncate -s 4G "$work/image"
mkfs.ext4 -q "$work/image"
mkdir "$work/disk" "$work/mount" "$work/overlay" "$work/logs"
mount -o loop "$work/image" "$work/disk"
mkdir "$work/disk"/{main,upper,work}
# A file and a tree of the layer below, which are copied up. The devices that fsstress makes would be whiteouts there.
head -c 200000 /dev/urandom >"$work/disk/main/below"
mkdir "$work/disk/main/tree"
(cd "$work/disk/main/tree" && "$work/fsstress" -d . -p 2 -n 500 -s "$seed" -f mknod=0 >/dev/null)

# listing FOLDER: every entry with its kind, mode, owner, size and checksum.
listing() {
  (cd "$1" && find . \
    \( -type f -printf '%p %y %m %U %G %s ' -exec sh -c 'md5sum <"$1"' sh {} \; \
    -o -printf '%p %y %m %U %G %l\n' \)) | sort
}
listing "$work/disk/main" >"$work/before"

"$bundlefs" "$work/disk/main" "$work/mount" -o "substitution=$work/disk/upper,writable,allow_other,dev,suid"
cd "$work/mount"
echo "fsx: $operations operations on a new file"
"$work/fsx" -q -N "$operations" -S "$seed" -P "$work/logs" new
echo "fsx: $((operations / 10)) operations on a file of the layer below"
"$work/fsx" -q -k -N "$((operations / 10))" -S "$seed" -P "$work/logs" below
echo "fsstress: 4 processes, $stress operations each, in a new tree and in one of the layer below"
mkdir stress
"$work/fsstress" -d stress -p 4 -n "$stress" -s "$seed" >/dev/null
"$work/fsstress" -d tree -p 4 -n "$stress" -s "$((seed + 1))" >/dev/null
cd /
"$bundlefs" sync "$work/mount"
listing "$work/mount" >"$work/ours"
umount "$work/mount"
listing "$work/disk/main" >"$work/after"
cmp "$work/before" "$work/after"
mount -t overlay overlay -o "lowerdir=$work/disk/main,upperdir=$work/disk/upper,workdir=$work/disk/work" \
  "$work/overlay"
listing "$work/overlay" >"$work/theirs"
if ! diff "$work/theirs" "$work/ours" >"$work/difference"; then
  head -20 "$work/difference"
  echo "xfstests: overlayfs shows another tree than the mount" >&2
  exit 1
fi
echo "passed: $(wc -l <"$work/ours") entries as overlayfs shows them, MAIN unchanged"
