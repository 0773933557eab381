# shellcheck shell=bash
# Shared by all scripts: the project's path, messages, package installation, builds. Sourced, never run.
# shellcheck disable=SC2034 # The variables are used by the sourcing scripts.

# The one locale that is always present, so that the output of tools is the same on every machine.
export LC_ALL=C.UTF-8
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)

build_packages=(libarchive-dev libbz2-dev libcurl4-openssl-dev libfuse3-dev libisal-dev libmicrohttpd-dev libutf8proc-dev zlib1g-dev fuse3)
test_packages=(
  "${build_packages[@]}" attr bash-completion bindfs binutils ca-certificates cpio desktop-file-utils dpkg-dev e2fsprogs fish gcab gcc-multilib git
  libarchive-tools libcap2-bin libglib2.0-bin man-db media-types mount nginx openssl p7zip-full procps python3 rpm rpmlint shared-mime-info shellcheck strace util-linux
  xdg-utils zsh
  # These contain archives to test with.
  junit4 libcommons-lang3-java python3-docx python3-pip-whl python3-setuptools-whl
)

if [[ -t 1 ]]; then bold=$'\e[1m' plain=$'\e[0m'; else bold='' plain=''; fi

# Prints a progress message with the minutes and seconds since the start.
step() {
  printf '%s[%02d:%02d] %s%s\n' "$bold" $((SECONDS / 60)) $((SECONDS % 60)) "$*" "$plain"
}

fail() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# Whether a log of swift test ends with at least one test run and all passed.
tests_passed() {
  grep -qE 'Test run with [1-9][0-9]* tests? .* passed' "$1"
}

# Prints the lines of a log of swift test that are not about passed tests: the first 40 and the last 40, which may
# report a crash.
print_failures() {
  # An argument may contain newlines.
  awk '/^(◇|✔|➜)/ { inside = 1 }
      /^✘/ { inside = 0 }
      !inside
      / (started\.|passed.*|skipped.*)$/ { inside = 0 }' "$1" |
    awk -v most=40 -v file="$1" '
      NR <= most { print; next }
      { last[NR % most] = $0 }
      END {
        if (NR > 2 * most) printf "… %d more lines in %s\n", NR - 2 * most, file
        for (line = NR - most + 1; line <= NR; line++) if (line > most) print last[line % most]
      }' >&2 || true
}

# Has signals exit the script, so that its EXIT trap runs.
exit_on_signals() {
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 141' PIPE
  trap 'exit 143' TERM
}

# Whether all commands are installed.
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

# Prints the packages that are not installed.
missing_packages() {
  local package status
  for package; do
    # shellcheck disable=SC2016 # The braces are dpkg-query's.
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || status=''
    [[ $status == installed ]] || printf '%s\n' "$package"
  done
}

# Runs a command as root: directly, or through sudo, which asks for a password only on a terminal.
as_root() {
  if ((EUID == 0)); then
    "$@"
  elif [[ -t 0 ]]; then
    sudo "$@"
  else
    sudo -n "$@"
  fi
}

# Whether another process holds a lock of apt or dpkg. A process cannot be seen without root; then apt waits silently.
apt_is_locked() {
  local lock
  have fuser || return 1
  for lock in /var/lib/apt/lists/lock /var/lib/dpkg/lock-frontend; do
    if as_root fuser -s "$lock" 2>/dev/null; then return 0; fi
  done
  return 1
}

# Runs apt-get update; waits for the lock on the lists, for which apt does not, for up to 10 minutes.
update_package_lists() {
  local output tries
  for ((tries = 0; tries < 300; tries++)); do
    if output=$(as_root apt-get "$@" update -qq 2>&1); then return 0; fi
    [[ $output == *lists/lock* ]] || break
    sleep 2
  done
  printf '%s\n' "$output" >&2
  return 1
}

install_packages() {
  [[ -z ${BUNDLEFS_SKIP_PACKAGES-} ]] || return 0
  have dpkg-query apt-get ||
    fail "this is not Debian (no apt-get): install the equivalents of $* by other means," \
      "then run again with BUNDLEFS_SKIP_PACKAGES=1"
  local missing
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0
  ((EUID == 0)) || have sudo ||
    fail "packages are missing and there is no sudo; as root:" \
      "apt-get install ${missing[*]}"
  step "Installing ${missing[*]}"
  # Another apt may hold the locks, such as unattended-upgrades.
  local wait=(-o DPkg::Lock::Timeout=600)
  if apt_is_locked; then step "Waiting for another apt or dpkg to finish (up to 10 minutes)"; fi
  if ! { update_package_lists "${wait[@]}" &&
    as_root env DEBIAN_FRONTEND=noninteractive apt-get "${wait[@]}" install -qq -y --no-install-recommends \
      "${missing[@]}" >/dev/null; }; then
    fail "could not install packages; as root: apt-get install ${missing[*]}"
  fi
}

require_swift() {
  have swift ||
    fail "swift is not on PATH: install Swift 6.2 or newer (https://www.swift.org/install/linux)" \
      "and open a new shell"
  local text version
  text=$(swift --version 2>&1) || fail "swift --version failed: $text"
  [[ $text =~ Swift\ version\ ([0-9]+)\.([0-9]+) ]] || fail "unknown Swift version: $text"
  version=${BASH_REMATCH[1]}.${BASH_REMATCH[2]}
  ((BASH_REMATCH[1] > 6 || (BASH_REMATCH[1] == 6 && BASH_REMATCH[2] >= 2))) ||
    fail "Swift $version is too old: 6.2 or newer is needed (https://www.swift.org/install/linux)"
}

# The release build is apart from the debug build, so that both can be made at once.
release_binary=$project/.build/static/release/bundlefs

# static_libraries FOLDER: prints the folder with those of the libraries that the release binary is linked with which have
# a static form: with all of them it needs nothing but glibc. FOLDER is where the build has the project.
static_libraries() {
  local folder=$project/.build/static/libraries name path
  mkdir -p "$folder"
  for name in bz2 fuse3 stdc++ z; do
    path=$(clang -print-file-name="lib$name.a")
    [[ $path != /* ]] || ln -sfn "$path" "$folder/lib$name.a"
  done
  printf '%s\n' "$1/.build/static/libraries"
}

# Prints the commit that the program is built from, with -dirty if a file differs from it; nothing outside of a repository.
commit() {
  git -c safe.directory="$project" -C "$project" describe --always --abbrev=12 --match '' --dirty 2>/dev/null || true
}

# Where the release binary is built, in a mount namespace of its own: objects and debugging information name paths.
build_folder=/usr/src/bundlefs

# enter_build_folder COMMAND…: runs the command where the project is $build_folder.
enter_build_folder() {
  local user=()
  ((EUID == 0)) || user=(--user --map-root-user)
  # shellcheck disable=SC2016 # Expanded by the inner shell.
  unshare "${user[@]}" --mount --propagation private bash -euc '
    mount -t tmpfs -o mode=755 tmpfs "${2%/*}"
    mkdir "$2"
    mount --bind "$1" "$2"
    cd "$2"
    shift 2
    exec "$@"' bash "$project" "$build_folder" "$@"
}

# Prints the command that has another command make the same files whatever the project's folder is. The compiler orders some
# of its work by addresses and hashes of its own memory.
reproducibly() {
  if [[ $project != "${build_folder%/*}"/* ]] && enter_build_folder true 2>/dev/null; then
    printf '%s\n' enter_build_folder
  fi
  if setarch --addr-no-randomize true 2>/dev/null; then printf '%s\n' setarch --addr-no-randomize; fi
  printf '%s\n' env SWIFT_DETERMINISTIC_HASHING=1
}

# Builds the release binary and sets $binary to its path.
build_release() {
  local by folder=$project
  install_packages "${build_packages[@]}"
  require_swift
  step "Building bundlefs (the first time takes a few minutes)"
  mapfile -t by < <(reproducibly)
  [[ ${by[0]} != enter_build_folder ]] || folder=$build_folder
  BUNDLEFS_COMMIT=$(commit) BUNDLEFS_STATIC_LIBRARIES=$(static_libraries "$folder") "${by[@]}" \
    swift build --quiet --package-path "$folder" --scratch-path "$folder/.build/static" -c release \
    --static-swift-stdlib --disable-local-rpath --product bundlefs
  binary=$release_binary
}

require_fuse_device() {
  [[ -e /dev/fuse ]] ||
    fail "/dev/fuse is missing: load the module (modprobe fuse), or start the container with" \
      "--device /dev/fuse --cap-add SYS_ADMIN"
  [[ -r /dev/fuse && -w /dev/fuse ]] ||
    fail "no permission to open /dev/fuse: run as root, or run as root: chmod 666 /dev/fuse"
}

# daemon_worker HOLDER: prints the process that answers the requests of a mount.
daemon_worker() {
  awk '{ print $NF }' "/proc/$1/task/$1/children"
}

# Prints the memory of processes in KiB that is not a file's: anonymous, and shared with each other.
own_memory() {
  local paths=("${@/#//proc/}")
  awk '$1 == "RssAnon:" || $1 == "RssShmem:" { sum += $2 } END { print sum }' "${paths[@]/%//status}"
}
