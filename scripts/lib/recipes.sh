# shellcheck shell=bash
# What other distributions build their packages from: recipes around the portable archive, all made of one description.
# Sourced by scripts/package, never run.
# shellcheck disable=SC2154 # $version and $timestamp are set by scripts/package.

summary='Mount a directory with some of its files replaced by others'
description='bundlefs mounts a directory, such as an application bundle, with files of
other directories or zip archives in place of its own, without copying or
changing it. Edits show at once. It is for developers, translators,
designers and testers who want to try another logo, text or library in an
application as it runs, and go back by deleting a file.'
# The licences of the program and of what is linked into it, as an SPDX expression.
licence='MIT AND (Apache-2.0 WITH Swift-exception) AND Unicode-3.0 AND (GPL-3.0-or-later WITH GCC-exception-3.1) AND LGPL-2.1-only AND Zlib AND bzip2-1.0.6'

# What is loaded on demand, a line each: the soname, the package of Arch, that of nixpkgs, and what it is for.
loaded_libraries=(
  'libarchive.so.13|libarchive|libarchive|archives other than zip as layers'
  'libcurl.so.4|curl|curl|layers by URL'
  'libisal.so.2|isa-l|isa-l|faster decompression'
  'libmicrohttpd.so.12|libmicrohttpd|libmicrohttpd|bundlefs ui'
  'libutf8proc.so.3|libutf8proc|utf8proc|names without case'
)

# loaded FIELDS…: prints these fields of the libraries, by a format of printf.
loaded() {
  local format=$1 line soname arch nix purpose
  for line in "${loaded_libraries[@]}"; do
    IFS='|' read -r soname arch nix purpose <<<"$line"
    # shellcheck disable=SC2059 # A format.
    case $2 in
      soname) printf "$format" "$soname" ;;
      arch) printf "$format" "$arch" "$purpose" ;;
      nix) printf "$format" "$nix" ;;
    esac
  done
}

# rpm_spec NAME: for Fedora, openSUSE and others with rpm. NAME is that of the archive, without its extension.
rpm_spec() {
  cat <<SPEC
# The program is stripped already, and has no sources here.
%global debug_package %{nil}
%global __strip /bin/true

Name:           bundlefs
Version:        $version
Release:        1
Summary:        $summary
License:        $licence
Source0:        $1.tar.gz
ExclusiveArch:  x86_64
Requires:       fuse3
$(loaded 'Recommends:     %s()(64bit)\n' soname)

%description
$description

%prep
%setup -q -n $1

%build
# It comes built.

%install
mkdir -p %{buildroot}%{_prefix} %{buildroot}%{_sbindir}
cp -a bin lib share %{buildroot}%{_prefix}
find %{buildroot} -name '*.service' -exec sed -i 's,/usr/local/,%{_prefix}/,g' {} +
for link in mount.bundlefs mount.fuse.bundlefs; do ln -s ../bin/bundlefs "%{buildroot}%{_sbindir}/\$link"; done

%check
%{buildroot}%{_bindir}/bundlefs -V

%files
%{_bindir}/bundlefs
%{_sbindir}/mount.bundlefs
%{_sbindir}/mount.fuse.bundlefs
%{_prefix}/lib/systemd/system/bundlefs@.service
%{_datadir}/systemd/user/bundlefs@.service
%{_datadir}/applications/bundlefs-open.desktop
%{_datadir}/bash-completion/completions/bundlefs
%{_datadir}/fish/vendor_completions.d/bundlefs.fish
%{_datadir}/zsh/site-functions/_bundlefs
%{_mandir}/man5/*.5*
%{_mandir}/man8/*.8*
%doc %{_datadir}/doc/bundlefs

%changelog
* $(LC_ALL=C date -u -d "@$timestamp" '+%a %b %d %Y') The bundlefs authors <${DEBEMAIL-bundlefs@localhost}> - $version-1
- See the changelog in the documentation.
SPEC
}

# pkgbuild NAME HASH: for Arch Linux.
pkgbuild() {
  cat <<PKGBUILD
# Maintainer: The bundlefs authors <${DEBEMAIL-bundlefs@localhost}>
pkgname=bundlefs
pkgver=${version//-/_}
pkgrel=1
pkgdesc='$summary'
arch=(x86_64)
license=('$licence')
depends=(fuse3 glibc)
optdepends=(
$(loaded "  '%s: %s'\n" arch)
)
options=(!strip !debug)
source=('$1.tar.gz')
sha256sums=('$2')

package() {
  cd "\$srcdir/$1"
  install -d "\$pkgdir/usr"
  cp -a bin lib share "\$pkgdir/usr/"
  find "\$pkgdir" -name '*.service' -exec sed -i 's,/usr/local/,/usr/,g' {} +
  ln -s bundlefs "\$pkgdir/usr/bin/mount.bundlefs"
  ln -s bundlefs "\$pkgdir/usr/bin/mount.fuse.bundlefs"
  install -Dm644 share/doc/bundlefs/copyright "\$pkgdir/usr/share/licenses/bundlefs/LICENSE"
}
PKGBUILD
}

# nix_flake NAME: for Nix.
nix_flake() {
  cat <<FLAKE
{
  description = "$summary";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      pkgs = nixpkgs.legacyPackages.x86_64-linux;
    in
    {
      packages.x86_64-linux.default = pkgs.stdenv.mkDerivation {
        pname = "bundlefs";
        version = "$version";
        src = ./$1.tar.gz;
        nativeBuildInputs = [ pkgs.autoPatchelfHook ];
        buildInputs = [ pkgs.stdenv.cc.cc.lib ];
        # Loaded on demand, so found by the program's run path.
        runtimeDependencies = with pkgs; [$(loaded ' %s' nix) ];
        dontBuild = true;
        installPhase = ''
          mkdir -p \$out
          cp -a bin lib share \$out
          find \$out -name '*.service' -exec sed -i "s,/usr/local/,\$out/," {} +
        '';
        meta.mainProgram = "bundlefs";
      };
    };
}
FLAKE
}

# containerfile NAME: an image whose command mounts in the foreground.
containerfile() {
  cat <<CONTAINERFILE
# podman build -t bundlefs .
# podman run --device /dev/fuse --cap-add SYS_ADMIN -v ./App:/main:ro -v ./over:/over -v ./mnt:/mnt:rshared \\
#   bundlefs /main /mnt -o substitution=/over,allow_other
FROM docker.io/library/debian:13-slim
RUN apt-get update \\
 && apt-get install -y --no-install-recommends fuse3 libarchive13t64 libcurl4t64 libutf8proc3 \\
 && rm -rf /var/lib/apt/lists/*
ADD $1.tar.gz /opt/
RUN cp -a /opt/$1/bin /opt/$1/lib /opt/$1/share /usr/local/ \\
 && rm -r /opt/$1 \\
 && ln -s /usr/local/bin/bundlefs /sbin/mount.bundlefs
ENTRYPOINT ["/usr/local/bin/bundlefs", "-f"]
CONTAINERFILE
}

# write_recipes FOLDER NAME: writes all of them beside the archive.
write_recipes() {
  local hash
  hash=$(sha256sum "$1/$2.tar.gz" | cut -d ' ' -f 1)
  rpm_spec "$2" >"$1/bundlefs.spec"
  pkgbuild "$2" "$hash" >"$1/PKGBUILD"
  nix_flake "$2" >"$1/flake.nix"
  containerfile "$2" >"$1/Containerfile"
}
