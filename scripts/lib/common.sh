# shellcheck shell=bash
# What the scripts share: where the project is, how they speak, and what they need installed.
# Sourced, never run.
# shellcheck disable=SC2034 # What is set here is used there.

# In the one locale that is always there, what a tool prints is the same on every machine.
export LC_ALL=C.UTF-8
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)

build_packages=(libfuse3-dev libzip-dev fuse3 pkg-config)
test_packages=(
  "${build_packages[@]}" attr bash-completion binutils desktop-file-utils dpkg-dev e2fsprogs fish git libcap2-bin
  libglib2.0-bin man-db media-types mount procps python3 shared-mime-info shellcheck strace util-linux xdg-utils
  zsh
  # For the archives in them.
  junit4 libcommons-lang3-java python3-docx python3-pip-whl python3-setuptools-whl
)
watcher_packages=(entr inotify-tools libglib2.0-bin nodejs python3-watchdog)

if [[ -t 1 ]]; then bold=$'\e[1m' plain=$'\e[0m'; else bold='' plain=''; fi

# A line that says what happens now, with the minutes and seconds since the start.
step() {
  printf '%s[%02d:%02d] %s%s\n' "$bold" $((SECONDS / 60)) $((SECONDS % 60)) "$*" "$plain"
}

fail() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# Whether swift test, of which a file has all that it said, told in the end that tests were run and passed.
tells_success() {
  grep -qE 'Test run with [1-9][0-9]* tests? .* passed' "$1"
}

# What failed, of all that swift test said into a file: the first of it and the last, which may be a crash.
tell_failures() {
  grep -vE '^. (Test|Suite) .* (started|passed)' "$1" |
    awk -v most=40 -v file="$1" '
      NR <= most { print; next }
      { last[NR % most] = $0 }
      END {
        if (NR > 2 * most) printf "… and %d lines more in %s\n", NR - 2 * most, file
        for (line = NR - most + 1; line <= NR; line++) if (line > most) print last[line % most]
      }' >&2 || true
}

# Has a signal end the script as an exit does, so that what stands in the trap for EXIT is done.
exit_on_signals() {
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 141' PIPE
  trap 'exit 143' TERM
}

# Whether all the commands are there.
have() {
  local command
  for command; do
    command -v "$command" >/dev/null || return 1
  done
}

# Swift's package manager misbehaves when one of the first three descriptors is closed.
open_stdin() {
  { : <&0; } 2>/dev/null || exec </dev/null
}

# The arguments that are not installed.
missing_packages() {
  local package status
  for package; do
    # shellcheck disable=SC2016 # The braces are dpkg-query's.
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || status=''
    [[ $status == installed ]] || printf '%s\n' "$package"
  done
}

# Runs a command as root: as it is, or through sudo, which asks for a password only where someone can answer.
as_root() {
  if ((EUID == 0)); then
    "$@"
  elif [[ -t 0 ]]; then
    sudo "$@"
  else
    sudo -n "$@"
  fi
}

install_packages() {
  [[ -z ${BUNDLEFS_SKIP_PACKAGES-} ]] || return 0
  have dpkg-query apt-get ||
    fail "this is not Debian (no apt-get): install what it calls $* by other means," \
      "then run again with BUNDLEFS_SKIP_PACKAGES=1"
  local missing
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0
  ((EUID == 0)) || have sudo ||
    fail "packages are missing, and without sudo only root can install them:" \
      "apt-get install ${missing[*]}"
  step "Installing ${missing[*]}"
  if ! { as_root apt-get update -qq &&
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
      "${missing[@]}" >/dev/null; }; then
    fail "could not install packages; as root: apt-get install ${missing[*]}"
  fi
}

require_swift() {
  have swift ||
    fail "there is no swift on PATH: install Swift 6.2 or newer (https://www.swift.org/install/linux)" \
      "and open a new shell"
  local text version
  text=$(swift --version 2>&1) || fail "swift --version failed: $text"
  [[ $text =~ Swift\ version\ ([0-9]+)\.([0-9]+) ]] || fail "unknown Swift version: $text"
  version=${BASH_REMATCH[1]}.${BASH_REMATCH[2]}
  ((BASH_REMATCH[1] > 6 || (BASH_REMATCH[1] == 6 && BASH_REMATCH[2] >= 2))) ||
    fail "Swift $version is too old: 6.2 or newer is needed (https://www.swift.org/install/linux)"
}

# Builds what users run; its path is then $binary.
build_release() {
  install_packages "${build_packages[@]}"
  require_swift
  step "Building bundlefs (the first time takes a few minutes)"
  local arguments=(--package-path "$project" -c release --static-swift-stdlib --product bundlefs)
  swift build --quiet "${arguments[@]}"
  binary=$(swift build "${arguments[@]}" --show-bin-path)/bundlefs
}

require_fuse_device() {
  [[ -e /dev/fuse ]] ||
    fail "there is no /dev/fuse: load the module (modprobe fuse), or start the container with" \
      "--device /dev/fuse --cap-add SYS_ADMIN"
  [[ -r /dev/fuse && -w /dev/fuse ]] ||
    fail "you may not open /dev/fuse: run as root, or as root: chmod 666 /dev/fuse"
}
