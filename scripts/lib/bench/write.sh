# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # The files of the benchmark share variables.
# The part write. Sourced by scripts/bench.

write_peers=(
  native overlayfs bundlefs bundlefs-passthrough ${BUNDLEFS_BASELINE:+bundlefs-baseline} fuse-overlayfs mergerfs
  unionfs-fuse
)

# Changes through the mount. The upper layer is empty at the start of each round, and on one file system with the layer
# below.
measure_write() {
  local kind
  # The peers mount as root.
  if ! has_peer overlayfs; then
    step "Skipping writes: they need root"
    return
  fi
  make_tree
  make_write_corpora
  for kind in tmpfs ext4; do
    step "Writing on $kind: rounds over the peers: $few_rounds"
    enter_stage "$kind"
    in_rounds "Writing on $kind" "$few_rounds" write_round "${write_peers[@]}"
    leave_stage
  done
}

# Makes an archive of the tree, and a repository with a branch of $checkout_files files.
make_write_corpora() {
  storm_files=$((files / 10)) checkout_files=$((files / 20)) transactions=$((files / 100))
  copied=$(((large + 9) / 10))
  must_make write || return 0
  progress 'making an archive and a repository'
  tar -C main -cf tree.tar .
  if have git; then
    mkdir -p checkout
    head -z -n "$checkout_files" files | tar -C main --null --verbatim-files-from -T - -cf - | tar -C checkout -xf -
    git_in_repository "$work/checkout" init -q
    git_in_repository "$work/checkout" add .
    git_in_repository "$work/checkout" -c user.name=bench -c user.email=bench@localhost commit -q -m files
    rm -rf checkout
  fi
  progress ''
}

# git_in_repository FOLDER ARGUMENT…: runs git on a work tree, with an index that is not in it.
git_in_repository() {
  env GIT_DIR="$work/repository" GIT_WORK_TREE="$1" GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 git "${@:2}"
}

stage=''

# Mounts a new file system of a type, with the default options, on ./stage, which is the path in stage from then on.
enter_stage() {
  local size=$((2 * large + copied + files / 10 + 1024))
  stage=$work/stage
  mkdir -p "$stage"
  if [[ $1 == tmpfs ]]; then
    as_root mount -t tmpfs -o "size=${size}m" bench "$stage"
  else
    truncate -s "${size}M" image
    mkfs.ext4 -q -F image
    as_root mount -o loop image "$stage"
  fi
  stage_kind=$1
  as_root chown "$(id -u):$(id -g)" "$stage"
  mkdir "$stage/main"
  measure largefile "$stage/main/large" "$copied"
}

leave_stage() {
  [[ -n $stage ]] || return 0
  as_root umount -- "$stage" 2>/dev/null || as_root umount -l -- "$stage" 2>/dev/null
  rm -f image
  stage=''
}

# As build_command, for a mount that takes changes.
build_write_command() {
  local peer=$1 main=$2 upper=$3 mountpoint=$4 superuser=()
  ((EUID == 0)) || superuser=(sudo -n)
  local options=lowerdir=$main,upperdir=$upper,workdir=$upper.work
  case $peer in
    bundlefs) command=("$bundlefs" "$main" "$mountpoint" -o "writable,substitution=$upper") ;;
    bundlefs-baseline) command=("$BUNDLEFS_BASELINE" "$main" "$mountpoint" -o "writable,substitution=$upper") ;;
    bundlefs-passthrough)
      command=("$bundlefs" "$main" "$mountpoint" -o "writable,passthrough,substitution=$upper")
      ;;
    overlayfs) command=("${superuser[@]}" mount -t overlay -o "$options" overlay "$mountpoint") ;;
    fuse-overlayfs) command=(fuse-overlayfs -o "$options" "$mountpoint") ;;
    mergerfs) command=(mergerfs -o "category.create=ff,minfreespace=0" "$upper=RW:$main=RO" "$mountpoint") ;;
    unionfs-fuse) command=(unionfs-fuse -o cow "$upper=RW:$main=RO" "$mountpoint") ;;
  esac
}

write_round() {
  local peer=$1 upper=$stage/upper builder=build_write_command kind
  mkdir "$upper" "$upper.work"
  if mount_peer "$peer" "$stage/main" "$upper"; then
    [[ $peer != native ]] || root=$upper
    mkdir "$root/storm" "$root/tree" "$root/checkout"
    for kind in create append overwrite rename unlink mkdir; do
      time_of "storm-$stage_kind" "$peer" "$kind" change "$root/storm" "$kind" "$storm_files"
    done
    write_programs "$peer"
    for kind in blocks pages; do
      settle
      # The host of a virtual machine takes memory back that is free, and is slow to give it again: a peer that keeps two
      # copies would be measured by that.
      measure memory $((2 * large))
      time_of "write-$stage_kind" "$peer" "$kind" change "$root" "$kind" "$large"
      rm "$root/$kind"
    done
    settle
    # mergerfs refuses it, and native has no layer below.
    [[ $peer == native || $peer == mergerfs ]] ||
      time_of "write-$stage_kind" "$peer" first change "$root" first 1
  fi
  unmount_all
  as_root rm -rf "$upper" "$upper.work"
}

# Writes back what was written before.
settle() {
  sync -f "$stage"
}

write_programs() {
  local peer=$1
  settle
  time_of "write-$stage_kind" "$peer" tar run "$root/tree" tar -xf "$work/tree.tar"
  settle
  if have git; then
    rm -f repository/index
    local -x GIT_DIR=$work/repository GIT_WORK_TREE=$root/checkout GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
    time_of "write-$stage_kind" "$peer" git run "$root/checkout" git checkout -q -f
  fi
  settle
  if python3 -c 'import sqlite3' 2>/dev/null; then
    local elapsed processor
    read -r elapsed processor < <("$project/scripts/lib/bench/transactions.py" "$root/database" "$transactions")
    record "write-$stage_kind" "$peer" sqlite "$elapsed"
    record "write-$stage_kind-processor" "$peer" sqlite "$processor"
  fi
}
