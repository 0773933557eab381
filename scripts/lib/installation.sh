# shellcheck shell=bash
# The files of an installation, their destinations, and how they are made: for scripts/install and scripts/package.
# Sourced after common.sh, never run.
# shellcheck disable=SC2154 # $project is set by common.sh, $binary by the sourcing script.

# Prints systemd's directory for system units below a prefix; user units are below share.
unit_folder() {
  printf '%s/lib/systemd/system' "$1"
}

# Prints the directory for helpers of mount(8), which looks in /sbin only; a user's own prefix has an unused one.
helper_folder() {
  case $1 in
    /usr | /usr/local) if [[ /sbin -ef /usr/sbin ]]; then printf /usr/sbin; else printf /sbin; fi ;;
    *) printf '%s/sbin' "$1" ;;
  esac
}

# Prints the directory for zsh completions: Debian's packages do not use that of zsh itself.
zsh_folder() {
  if [[ $1 == /usr ]]; then printf /usr/share/zsh/vendor-completions; else printf '%s/share/zsh/site-functions' "$1"; fi
}

# Prints a line METHOD SOURCE PATH for each file of an installation below a prefix. SOURCE is relative to scripts/share,
# or the target of a link.
installation() {
  local prefix=$1 share=$1/share units helpers link
  units=$(unit_folder "$prefix")
  helpers=$(helper_folder "$prefix")
  printf '%s\t%s\t%s\n' \
    program bundlefs "$prefix/bin/bundlefs" \
    page man/bundlefs.8 "$share/man/man8/bundlefs.8.gz" \
    page man/bundlefs-routes.5 "$share/man/man5/bundlefs-routes.5.gz" \
    words completions/bundlefs.bash "$share/bash-completion/completions/bundlefs" \
    words completions/bundlefs.fish "$share/fish/vendor_completions.d/bundlefs.fish" \
    words completions/_bundlefs "$(zsh_folder "$prefix")/_bundlefs" \
    file bundlefs-open.desktop "$share/applications/bundlefs-open.desktop" \
    unit systemd/bundlefs@.service "$units/bundlefs@.service" \
    unit systemd/bundlefs@.service "$share/systemd/user/bundlefs@.service" \
    file grafana/bundlefs.json "$share/doc/bundlefs/examples/grafana.json" \
    file systemd/srv-app.mount "$share/doc/bundlefs/examples/srv-app.mount" \
    file systemd/srv-app.automount "$share/doc/bundlefs/examples/srv-app.automount"
  for link in mount.bundlefs mount.fuse.bundlefs; do
    printf '%s\t%s\t%s\n' link "$prefix/bin/bundlefs" "$helpers/$link" \
      link "$share/man/man8/bundlefs.8.gz" "$share/man/man8/$link.8.gz"
  done
}

# Prints a completion script with the word table, which all of them share, inserted.
with_words() {
  awk -v words="$(<"$project/scripts/share/completions/words")" \
    '{ at = index($0, "@WORDS@"); if (at) $0 = substr($0, 1, at - 1) words substr($0, at + 7); print }' "$1"
}

# clear_section NAME PROGRAM: overwrites a section by zeros, if there is one: hashes of modules, which differ from build to
# build. Without a section that is loaded, the others' protection would be lost.
clear_section() {
  local content size
  content=$(mktemp)
  if objcopy --dump-section "$1=$content" "$2" 2>/dev/null; then
    size=$(stat -c %s "$content")
    : >"$content"
    truncate -s "$size" "$content"
    objcopy --update-section "$1=$content" "$2"
  fi
  rm "$content"
}

# install_file METHOD SOURCE TARGET PATH PREFIX: creates one file at TARGET, which is PATH below the root.
install_file() {
  local method=$1 source=$project/scripts/share/$2 target=$3 path=$4 prefix=$5
  case $method in
    program)
      strip --strip-unneeded --remove-section=.comment -o "$target" "$binary"
      clear_section .swift_modhash "$target"
      chmod 755 "$target"
      return
      ;;
    link)
      ln -s "$(realpath -ms --relative-to="${path%/*}" "$2")" "$target"
      return
      ;;
    page) gzip -9nc "$source" >"$target" ;;
    words) with_words "$source" >"$target" ;;
    unit) sed "s|@PREFIX@|$prefix|g" "$source" >"$target" ;;
    file) cp "$source" "$target" ;;
  esac
  chmod 644 "$target"
}

# Makes a directory and its missing parents, and prints those that it made, the outermost first.
make_folders() {
  local folder=$1 missing=()
  while [[ ! -d $folder ]]; do
    missing=("$folder" "${missing[@]}")
    folder=${folder%/*}
  done
  for folder in "${missing[@]}"; do
    mkdir -m 755 -- "$folder"
    printf '%s\n' "$folder"
  done
}

# install_all ROOT PREFIX: installs all files below ROOT, which is empty for the system itself, and prints the paths of
# the files and directories that it made, without ROOT, in the order of creation.
install_all() {
  local root=$1 prefix=$2 method source path
  while IFS=$'\t' read -r method source path; do
    make_folders "$root${path%/*}" | while IFS= read -r folder; do printf '%s\n' "${folder#"$root"}"; done
    printf '%s\n' "$path"
    install_file "$method" "$source" "$root$path" "$path" "$prefix"
  done < <(installation "$prefix")
}
