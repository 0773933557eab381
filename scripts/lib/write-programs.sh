#!/bin/bash
# Runs real programs on a writable mount and on a plain copy of what it shows, and compares the trees afterwards: git,
# dpkg, pip, SQLite, make, sed, vim, rsync, a site generator and cp. Kernel overlayfs must show the same of the layers
# then, and MAIN must be unchanged.
#
#   scripts/lib/write-programs.sh [FILES]
#
# FILES is how many files cp copies; the default is 20,000. Needs root; programs that are not installed are skipped and
# named.
set -euo pipefail

files=${1:-20000}
root=$(cd "$(dirname "$0")/../.." && pwd)
bundlefs=${BUNDLEFS_BINARY:-$root/.build/static/release/bundlefs}
work=$(mktemp -d)
mount=$work/mount plain=$work/plain disk=$work/disk

finish() {
  cd /
  umount -l "$mount" "$work/overlay" 2>/dev/null || true
  umount -l "$disk" 2>/dev/null || true
  rm -rf --one-file-system "$work"
}
trap finish EXIT

export HOME=$work GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@localhost GIT_COMMITTER_NAME=a
export GIT_COMMITTER_EMAIL=a@localhost GIT_AUTHOR_DATE=2001-01-01T00:00:00Z GIT_COMMITTER_DATE=2001-01-01T00:00:00Z
export PYTHONDONTWRITEBYTECODE=1 SOURCE_DATE_EPOCH=1000000000

# MAIN: a C project, a site, a repository and a tree.
make_main() {
  mkdir -p "$1"/{project,site/content,site/layouts/_default,tree,checkout}
  for number in {1..40}; do
    echo "int function$number(void) { return $number; }" >"$1/project/file$number.c"
    printf -- '---\ntitle: Page %s\n---\nText %s\n' "$number" "$number" >"$1/site/content/page$number.md"
  done
  echo 'int main(void) { return 0; }' >"$1/project/main.c"
  printf 'program:' >"$1/project/Makefile"
  (cd "$1/project" && printf ' %s' *.c | sed 's/[.]c/.o/g') >>"$1/project/Makefile"
  printf '\n\tcc -o program *.o\nclean:\n\trm -f *.o program\n' >>"$1/project/Makefile"
  printf 'title = "Site"\nbaseURL = "http://localhost/"\ndisableKinds = ["RSS", "sitemap"]\n' >"$1/site/config.toml"
  echo '<h1>{{ .Title }}</h1>{{ .Content }}' >"$1/site/layouts/_default/single.html"
  echo '{{ range .Pages }}<a href="{{ .RelPermalink }}">{{ .Title }}</a>{{ end }}' >"$1/site/layouts/_default/list.html"
  for ((number = 0; number < files; number++)); do
    ((number % 200)) || mkdir "$1/tree/$((number / 200))"
    echo "$number" >"$1/tree/$((number / 200))/$number"
  done
}

# Each is run in the mount and in the plain copy.
run_git() {
  cd checkout
  git init -q -b main .
  cp -r ../project .
  git add . && git commit -q -m one
  for number in {1..20}; do echo "// $number" >>"project/file$number.c"; done
  rm project/file3[0-9].c && git add -A && git commit -q -m two
  git checkout -q -b other HEAD~1
  git checkout -q main && git gc -q --aggressive --prune=now
  git fsck --strict 2>&1
  git status --porcelain
  # Its times and the order of its packs differ.
  rm -rf .git
}
run_dpkg() {
  local package=$work/packages/package.deb
  mkdir unpacked && dpkg -x "$package" unpacked
}
run_pip() {
  python3 -m pip install -q --no-index --no-deps --no-compile --root-user-action=ignore \
    --target installed /usr/share/python-wheels/setuptools-*.whl
  PYTHONPATH=installed python3 -c 'import setuptools'
}
run_sqlite3() {
  local mode
  for mode in delete wal; do
    {
      echo "PRAGMA journal_mode=$mode; CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);"
      for number in {1..200}; do echo "INSERT INTO t(b) VALUES(printf('%0500d', $number));"; done
      echo "BEGIN; DELETE FROM t WHERE a % 3 = 0; ROLLBACK; DELETE FROM t WHERE a % 5 = 0; VACUUM;"
      echo "PRAGMA integrity_check; SELECT count(*), sum(length(b)) FROM t;"
    } | sqlite3 "database.$mode"
  done
}
run_make() {
  make -s -j2 -C project && ./project/program
  touch project/file1.c && make -s -C project && make -s -C project clean
}
run_sed() { sed -i 's/return/return 1 +/' project/file*.c && sed -i.bak 2d site/config.toml; }
run_vim() { vim -u NONE -N -es -c '%s/Text/Words/' -c wq site/content/page1.md && vim -u NONE -N -es -c 'set backup' -c 's/.*/&x/' -c x project/main.c; }
run_rsync() {
  cp -a project mirror && rm mirror/file1*.c && echo changed >mirror/file2.c && mkdir mirror/gone
  rsync -a --delete project/ mirror/
  rsync -a --delete --exclude=/0/ tree/ mirror/
  diff -r --exclude=0 tree mirror
}
run_hugo() {
  cd site
  hugo --quiet -d public
  # What an editor saves while it serves must be visible.
  hugo server --quiet --port "$1" --disableLiveReload >"$work/server" 2>&1 &
  local server=$!
  await_page "$1" 'Text 2'
  sed -i 's/Text 2/Saved/' content/page2.md
  await_page "$1" Saved
  kill "$server"
  wait "$server" 2>/dev/null || true
  rm -rf .hugo_build.lock resources
}
# await_page PORT TEXT: waits until the served page has the text.
await_page() {
  local count
  for ((count = 0; count < 200; count++)); do
    if curl -sf "http://localhost:$1/page2/" | grep -q "$2"; then return; fi
    sleep 0.1
  done
  echo "write-programs: the server does not show: $2" >&2
  return 1
}
run_cp() { cp -a tree copy && diff -r tree copy && rm -r tree/1*; }

# listing FOLDER: every entry with its kind, mode, owner, size and target, and the checksum of every file.
listing() {
  (cd "$1" && find . \
    \( -type f -printf '%p %y %m %U %G %s\n' -o -printf '%p %y %m %U %G %l\n' \) | sort &&
    find . -type f -print0 | sort -z | xargs -0 md5sum)
}

truncate -s 4G "$work/image"
mkfs.ext4 -q "$work/image"
mkdir "$disk" "$mount" "$work/overlay" "$work/packages"
mount -o loop "$work/image" "$disk"
mkdir "$disk"/{main,upper,work}
make_main "$disk/main"
cp -a "$disk/main" "$plain"
listing "$disk/main" >"$work/before"
(cd "$work/packages" && apt-get download -q bash >/dev/null 2>&1 && mv bash*.deb package.deb) || true
"$bundlefs" "$disk/main" "$mount" -o "substitution=$disk/upper,writable,allow_other,dev,suid"

# step NAME [ARGUMENT...]: runs it in both, and compares what it prints.
step() {
  local name=$1
  if ! command -v "$name" >/dev/null && [[ $name != pip ]]; then
    echo "skipped: $name is not installed"
    return
  fi
  if [[ $name == dpkg && ! -f $work/packages/package.deb ]]; then
    echo "skipped: $name, as no package could be downloaded"
    return
  fi
  (cd "$plain" && "run_$name" 1313) >"$work/theirs"
  (cd "$mount" && "run_$name" 1314) >"$work/ours"
  cmp "$work/theirs" "$work/ours"
  echo "passed: $name"
}
for name in git dpkg pip sqlite3 make sed vim rsync hugo cp; do step "$name"; done

"$bundlefs" sync "$mount"
listing "$mount" >"$work/ours"
listing "$plain" | sed "s|$plain|$mount|g" >"$work/theirs"
diff "$work/theirs" "$work/ours" | head -20
umount "$mount"
listing "$disk/main" >"$work/after"
cmp "$work/before" "$work/after"
mount -t overlay overlay -o "lowerdir=$disk/main,upperdir=$disk/upper,workdir=$disk/work" "$work/overlay"
listing "$work/overlay" >"$work/theirs"
diff "$work/theirs" "$work/ours" | head -20
echo "passed: $(wc -l <"$work/ours") entries as on a plain file system and on overlayfs, MAIN unchanged"
