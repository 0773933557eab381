# shellcheck shell=bash
# Readers of healthy content beside layers that fail in every way. Sourced by scripts/soak after common.sh.
# shellcheck disable=SC2154 # $run and $binary are set by the sourcing script.

# Makes four layers, top first: a local one whose files the readers verify, one on a loop device, one on FUSE, and MAIN.
make_chaos_layers() {
  chaos=$run/chaos
  mkdir -p "$chaos"/{over,disk,backing,fuse,main,point,results}
  python3 "$project/scripts/lib/chaos_reader.py" --fill "$chaos/over" 200
  echo main >"$chaos/main/from-main"
  echo fuse >"$chaos/backing/from-fuse"
  truncate -s 16M "$chaos/image"
  mkfs.ext4 -q -F "$chaos/image"
  attach_disk
  echo disk >"$chaos/disk/from-disk"
  local layer
  for layer in disk backing main; do mkdir -p "$chaos/$layer/d0" && echo "$layer" >"$chaos/$layer/d0/in-$layer"; done
  # The removal of the disk loses what is not written.
  sync -f "$chaos/disk/from-disk"
  mount_fuse_layer
}

# Attaches a loop device of its own each time: what still uses a removed one keeps it.
attach_disk() {
  local device
  device=$(losetup --find --show "$chaos/image")
  mount "$device" "$chaos/disk"
  # Detaches the device with its last user.
  losetup --detach "$device"
}

mount_fuse_layer() {
  "$binary" "$chaos/backing" "$chaos/fuse" -o cache=none -f 2>>"$chaos/fuse.errors" &
  fuse_daemon=$!
  wait_for_mount "$chaos/fuse"
}

mount_chaos() {
  make_chaos_layers
  "$binary" "$chaos/main" "$chaos/point" -o "substitution=$chaos/over:$chaos/disk:$chaos/fuse" -f \
    2>"$chaos/errors" &
  daemon=$!
  limit_group=/sys/fs/cgroup/bundlefs-chaos-$$
  [[ -e /sys/fs/cgroup/cgroup.controllers ]] || limit_group=/sys/fs/cgroup/memory/bundlefs-chaos-$$
  mkdir "$limit_group"
  wait_for_mount "$chaos/point"
  local process reader
  for process in "$daemon" $(daemon_worker "$daemon"); do echo "$process" >"$limit_group/cgroup.procs"; done
  chaos_readers=()
  for reader in {1..4}; do
    python3 "$project/scripts/lib/chaos_reader.py" "$chaos/point" "$chaos/results/$reader" &
    chaos_readers+=("$!")
  done
}

wait_for_mount() {
  local _
  for _ in {1..100}; do
    mountpoint -q "$1" && return
    sleep 0.1
  done
  fail "the mount at $1 did not appear: $(tail -n 3 "$chaos"/*errors)"
}

# limit_files NUMBER: limits the descriptors of the daemon, and of the workers that it forks later.
limit_files() {
  local process
  for process in "$daemon" $(daemon_worker "$daemon"); do prlimit --pid "$process" --nofile="$1:"; done
}

# limit_memory BYTES: limits the daemon's memory; -1 for no limit.
limit_memory() {
  local file=$limit_group/memory.max
  [[ -e $file ]] || file=$limit_group/memory.limit_in_bytes
  if [[ $1 == -1 && $file == *.max ]]; then echo max >"$file"; else echo "$1" >"$file"; fi
}

# Does harm and undoes it. Prints what it has done.
disturb() {
  case $((RANDOM % 10)) in
    0 | 1)
      echo "the FUSE layer stops"
      kill -STOP "$fuse_daemon"
      timeout 1 cat "$chaos/point/from-fuse" >"$chaos/out" 2>&1
      sleep "$((RANDOM % 4))"
      kill -CONT "$fuse_daemon"
      ;;
    2)
      echo "the FUSE layer dies and is mounted again"
      kill -KILL "$fuse_daemon"
      wait "$fuse_daemon" 2>/dev/null
      sleep 1
      umount -l "$chaos/fuse"
      mount_fuse_layer
      ;;
    3)
      echo "the disk is removed and mounted again"
      python3 "$project/scripts/lib/chaos_reader.py" --shut-down "$chaos/disk"
      sleep 1
      umount -l "$chaos/disk"
      attach_disk
      ;;
    4)
      echo "descriptors are limited"
      limit_files 48
      sleep 2
      limit_files 1024
      ;;
    5)
      echo "inotify watches are limited"
      local watches
      watches=$(</proc/sys/fs/inotify/max_user_watches)
      echo 8 >/proc/sys/fs/inotify/max_user_watches
      echo changed >"$chaos/backing/changed"
      sleep 2
      echo "$watches" >/proc/sys/fs/inotify/max_user_watches
      ;;
    6)
      echo "signals are sent"
      local signal
      for signal in USR1 USR2 ALRM HUP WINCH IO PIPE CONT; do kill -"$signal" "$daemon"; done
      ;;
    7)
      echo "the clock is set an hour ahead, and back"
      date -s '+1 hour' >/dev/null
      sleep 1
      date -s '-1 hour' >/dev/null
      ;;
    8)
      echo "the worker is killed"
      kill -KILL "$(daemon_worker "$daemon")"
      ;;
    9)
      echo "memory is limited"
      limit_memory $((20 << 20))
      cat "$chaos"/point/d*/* >"$chaos/out" 2>&1
      sleep 1
      limit_memory -1
      ;;
  esac
}

# Fails unless all layers are read again within 60 seconds.
expect_recovery() {
  local _ name
  for name in fuse disk main; do
    for _ in {1..300}; do
      [[ $(timeout 5 cat "$chaos/point/from-$name" "$chaos/point/d0/in-${name/fuse/backing}" 2>/dev/null | wc -l) == 2 ]] &&
        continue 2
      sleep 0.2
    done
    fail "the layer '$name' did not recover: $("$binary" status "$chaos/point" 2>&1 | head -n 12)"
  done
  kill -0 "$daemon" 2>/dev/null || fail "the daemon is gone: $(<"$chaos/errors")"
}

# chaos MINUTES: the readers verify content all the time, and report at the end.
run_chaos() {
  local end=$((SECONDS + $1 * 60)) reader status=0
  mount_chaos
  while ((SECONDS < end)); do
    disturb >"$chaos/what" || true
    step "$(<"$chaos/what")"
    expect_recovery
    for reader in "${chaos_readers[@]}"; do
      kill -0 "$reader" 2>/dev/null || status=1
    done
    ((status == 0)) || break
  done
  kill -TERM "${chaos_readers[@]}" 2>/dev/null || true
  for reader in "${chaos_readers[@]}"; do wait "$reader" || status=1; done
  cat "$chaos"/results/*
  "$binary" unmount "$chaos/point"
  "$binary" unmount "$chaos/fuse"
  umount "$chaos/disk"
  wait "$daemon" || status=1
  daemon=''
  rmdir "$limit_group"
  ((status == 0)) || fail "readers of healthy content read wrong bytes or waited too long"
}
