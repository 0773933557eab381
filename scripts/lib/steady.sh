# shellcheck shell=bash
# A long-lived mount under load, whose daemon must neither grow nor leak descriptors. Sourced by scripts/soak after
# common.sh.
# shellcheck disable=SC2154 # $run and $binary are set by the sourcing script.

# Makes two directories and an archive with a few hundred names; later changes use the same names.
make_layers() {
  local folder file
  steady=$run/steady
  mkdir -p "$steady"/{main,over,archived,point}
  for folder in {0..9}; do
    mkdir -p "$steady/main/d$folder" "$steady/archived/d$folder"
    for file in {0..29}; do
      echo "main's $file in $folder" >"$steady/main/d$folder/m$file"
      echo "the archive's $file in $folder" >"$steady/archived/d$folder/a$file"
    done
  done
  make_archive
}

# Rebuilds the archive and replaces it atomically.
make_archive() {
  (cd "$steady/archived" && python3 -m zipfile -c ../new.zip .)
  mv "$steady/new.zip" "$steady/archive.zip"
}

mount_long_lived() {
  make_layers
  "$binary" "$steady/main" "$steady/point" -o "substitution=$steady/over:$steady/archive.zip,routes_mode=600" -f \
    2>"$steady.errors" &
  daemon=$!
  for _ in {1..100}; do
    mountpoint -q "$steady/point" && break
    sleep 0.1
  done
  mountpoint -q "$steady/point" || fail "the long-lived mount did not appear: $(<"$steady.errors")"
  echo 'route Steady l:(steady)A/i:Round' >"$steady/point/.routes"
  generate_load &
  worker=$!
}

# Reads, changes and queries the mount until it is killed.
generate_load() {
  local round=0 folder file
  # Reads of files that change meanwhile may fail.
  set +e
  cd "$steady" || return
  while :; do
    round=$((round + 1))
    echo "$round" >../rounds
    folder=d$((RANDOM % 10)) file=$((RANDOM % 30))
    mkdir -p "over/$folder"
    echo "$round" >"over/$folder/m$file"
    echo "$round" >"over/$folder/new" && mv "over/$folder/new" "over/$folder/m$((RANDOM % 30))"
    touch "over/$folder/.wh.m$((RANDOM % 30))"
    ((round % 7)) || rm -rf "over/d$((RANDOM % 10))"
    if ((round % 11 == 0)); then
      echo "$round" >"archived/$folder/a$file"
      make_archive
    fi
    find point -type f -exec cat {} + >/dev/null 2>&1
    ls -lR point >/dev/null 2>&1
    echo "x://steady/$round" >point/.routes
    ((round % 5)) || "$binary" sync point
    ((round % 13)) || "$binary" invalidate point
    ((round % 17)) || "$binary" status point --json >/dev/null
  done
}

# Appends a line to the samples: seconds, KiB of memory of the daemon's processes without files, its descriptors.
sample() {
  # Without load, and without nodes that only the kernel's caches hold.
  kill -STOP "$worker"
  sleep 1.5
  echo 2 >/proc/sys/vm/drop_caches
  sleep 1
  printf '%s %s %s\n' "$SECONDS" "$(daemon_memory)" \
    "$(find "/proc/$daemon/fd" -mindepth 1 2>/dev/null | wc -l)" >>"$samples"
  kill -CONT "$worker"
}

# Of the holder and its worker.
daemon_memory() {
  own_memory "$daemon" "$(daemon_worker "$daemon")"
}

sample_until_exit() {
  while kill -0 "$daemon" 2>/dev/null; do
    sample
    sleep 8
  done
}

# Compares the two halves of the second half of the samples: memory and descriptors must not grow beyond a tolerance for
# the allocator.
check_growth() {
  awk '
    { memory[NR] = $2; files[NR] = $3; if ($2 > most) most = $2 }
    function mean(values, from, to,   sum, i) {
      for (i = from; i <= to; i++) sum += values[i]
      return sum / (to - from + 1)
    }
    END {
      if (NR < 8) { print "only " NR " samples: too few to judge"; exit 1 }
      half = int(NR / 2); middle = half + int((NR - half) / 2)
      before = mean(memory, half + 1, middle); after = mean(memory, middle + 1, NR)
      opened = mean(files, half + 1, middle); open = mean(files, middle + 1, NR)
      printf "memory %.1f, then %.1f MiB (most %.1f); descriptors %.0f, then %.0f; %d samples\n", \
        before / 1024, after / 1024, most / 1024, opened, open, NR
      exit after > before * 1.05 + 1024 || open > opened + 8
    }' "$samples"
}

# Compares the mount with a merge of its layers.
compare_with_layers() {
  local expected=$run/expected path
  mkdir "$expected"
  (cd "$expected" && python3 -m zipfile -e "$steady/archive.zip" "$run/unpacked")
  cp -a "$steady/main/." "$expected"
  cp -a "$run/unpacked/." "$expected"
  # Applies the whiteouts before copying the topmost layer.
  find "$steady/over" -name '.wh.*' -printf '%P\n' | while IFS= read -r path; do
    rm -rf -- "${expected:?}/${path/.wh./}"
  done
  cp -a "$steady/over/." "$expected"
  find "$expected" -name '.wh.*' -delete
  "$binary" sync "$steady/point"
  diff -r "$expected" "$steady/point"
}

finish_long_lived() {
  kill -0 "$worker" 2>/dev/null || fail "the load generator of the long-lived mount exited"
  # The sampler may just have stopped it.
  kill "$sampler" "$worker"
  kill -CONT "$worker" 2>/dev/null || true
  wait "$worker" "$sampler" 2>/dev/null || true
  kill -0 "$daemon" 2>/dev/null || fail "the long-lived mount's daemon died: $(<"$steady.errors")"
  compare_with_layers || fail "the long-lived mount differs from its layers"
  check_growth || fail "the long-lived mount's daemon grows; the samples: $(tail -n 20 "$samples")"
  step "Rounds of load: $(<"$run/rounds")"
  "$binary" unmount "$steady/point"
  wait "$daemon" || fail "the long-lived mount's daemon failed: $(<"$steady.errors")"
  [[ ! -s $steady.errors ]] || fail "the long-lived mount's daemon printed: $(<"$steady.errors")"
  rm -rf "$steady" "$steady.errors" "$samples" "$run/rounds" "$run/expected" "$run/unpacked"
}
