import Posix
import TestSupport
import Testing

/// Installs into the system, mounts by its fstab and uninstalls. Overlays on the system's folders keep the machine
/// unchanged.
extension MountTests.ExclusiveTests {
  @Suite struct SystemInstallTests {
    @Test("scripts/install installs, an fstab line mounts, and --uninstall removes", .timeLimit(.minutes(2)))
    func install() throws {
      let fixture = try Fixture()
      let output = try run(
        fixture,
        #"""
        "$scripts/install" >/dev/null
        as_in_fstab
        bundlefs -V | sed -n '1s/ .*//p'
        man -w bundlefs mount.bundlefs bundlefs-routes | sed 's|.*/||'
        "$scripts/install" --uninstall >/dev/null
        """#)
      #expect(
        output == """
          substitution's replaced, longer
          bundlefs
          bundlefs.8.gz
          bundlefs.8.gz
          bundlefs-routes.5.gz

          """)
    }

    @Test("the package of scripts/package installs, works and purges cleanly", .timeLimit(.minutes(3)))
    func package() throws {
      let fixture = try Fixture()
      let output = try run(
        fixture,
        #"""
        package=$("$scripts/package" "$room/package" 2>/dev/null)
        dpkg-deb --field "$package" Depends | tr -d ' ' | tr , '\n' | sed 's/(.*//' | grep -Ex 'fuse3|libc6' | sort
        dpkg --no-triggers --force-unsafe-io --install "$package" >/dev/null
        dpkg --status bundlefs | grep -o 'ok installed'
        dpkg --verify bundlefs
        as_in_fstab
        depends=", $(dpkg-deb --field "$package" Depends | sed 's/ ([^)]*)//g'),"
        mapfile -t libraries < <(ldd /usr/bin/bundlefs | awk '$3 ~ /^\// { print $1, $3 }')
        for library in "${libraries[@]}"; do
          objdump -p /usr/bin/bundlefs | grep -q "NEEDED *${library% *}$" || continue
          file=$(basename "$(realpath "${library#* }")")
          owners=$(grep -lF "/$file" /var/lib/dpkg/info/*.list | sed 's|.*/||; s|[.]list$||; s|:.*||')
          for owner in $owners; do [[ $depends != *", $owner,"* ]] || continue 2; done
          echo "Depends lacks ${library% *} of" $owners
        done
        dpkg --no-triggers --purge bundlefs >/dev/null
        dpkg --status bundlefs &>/dev/null || echo 'purged'
        """#)
      #expect(
        output == """
          fuse3
          libc6
          ok installed
          substitution's replaced, longer
          purged

          """)
    }

    @Test(
      "the portable archive has a program that needs glibc only, or is refused with the names of the libraries",
      .timeLimit(.minutes(3)))
    func portable() throws {
      let fixture = try Fixture()
      let output = try run(
        fixture,
        #"""
        foreign=$(objdump -p "$BUNDLEFS_BINARY" | awk '$1 == "NEEDED" && $2 !~ /^(ld-linux|lib[cm][.]so)/ { print $2 }')
        if archive=$("$scripts/package" --portable "$room/package" 2>"$room/messages"); then
          [[ -z $foreign ]] || echo "it needs $foreign"
          grep -qE 'needs glibc 2[.][0-9]+ or newer' "$room/messages" || cat "$room/messages"
          mkdir "$room/local"
          tar -C "$room/local" --strip-components 1 -xf "$archive"
          ln -s "$room/local/bin/bundlefs" /sbin/mount.bundlefs
          as_in_fstab
          rm /sbin/mount.bundlefs
          man -M "$room/local/share/man" -w bundlefs | sed 's|.*/||'
        else
          for library in $foreign; do
            grep -qF "$library" "$room/messages" || echo "$library is not named"
          done
          [[ -n $foreign ]] || cat "$room/messages"
          printf "substitution's replaced, longer\\nbundlefs.8.gz\\n"
        fi
        """#)
      #expect(output == "substitution's replaced, longer\nbundlefs.8.gz\n")
    }

    @Test(
      "the recipes for other distributions pass their linters and make packages that have all files",
      .timeLimit(.minutes(3)))
    func recipes() throws {
      let fixture = try Fixture()
      let output = try run(
        fixture,
        #"""
        if ! archive=$("$scripts/package" --recipes "$room/package" 2>"$room/messages"); then
          # As for the portable archive.
          grep -q 'build it where their static forms are installed' "$room/messages" && echo 'the same' && exit
          cat "$room/messages"
        fi
        cd "$room/package"
        name=$(basename "$archive" .tar.gz)
        echo "$name.tar.gz PKGBUILD Containerfile bundlefs.spec flake.nix" | tr ' ' '\n' | sort >expected
        ls | grep -vx expected | sort | diff expected -
        rpmlint bundlefs.spec | grep -E 'errors' | sed 's/.*checked; //; s/,.*//'
        rpmbuild -bb --nodeps --define "_topdir $room/rpm" --define "_sourcedir $PWD" bundlefs.spec >"$room/messages" 2>&1 ||
          cat "$room/messages"
        package=$(find "$room/rpm/RPMS" -name '*.rpm')
        rpm --dbpath "$room/database" -qp --recommends "$package" | grep -c '^lib.*[.]so[.][0-9]*()(64bit)$'
        mkdir -p "$room/root" "$room/src" "$room/arch"
        (cd "$room/root" && rpm2cpio "$package" | cpio -idm --quiet)
        tar -C "$room/src" -xf "$archive"
        sha256sum --quiet -c <<<"$(bash -c '. ./PKGBUILD; echo "${sha256sums[0]}  ${source[0]}"')"
        (srcdir=$room/src pkgdir=$room/arch bash -euc '. ./PKGBUILD; package')
        for root in "$room/root" "$room/arch"; do
          "$(find "$root/usr" -path '*bin/bundlefs')" -V | sed -n '1s/ .*//p'
          "$(find "$root/usr" -path '*bin/mount.bundlefs')" -V | sed -n '1s/ .*//p'
          grep -rl /usr/local/ "$root/usr/lib" "$root/usr/share/systemd" || true
          # All that the archive has is there, whichever folder is for it.
          find "$room/src/$name" -type f -printf '%f\n' | sort -u | comm -23 - <(find "$root" -printf '%f\n' | sort -u)
        done
        # The bill of materials describes this program, and names what is linked into it.
        python3 - "$room/arch/usr" <<'END'
        import hashlib, json, sys
        bill = json.load(open(sys.argv[1] + "/share/doc/bundlefs/bundlefs.spdx.json"))
        parts = {part["SPDXID"]: part for part in bill["packages"]}
        hashed = hashlib.sha256(open(sys.argv[1] + "/bin/bundlefs", "rb").read()).hexdigest()
        assert parts["SPDXRef-bundlefs"]["checksums"][0]["checksumValue"] == hashed
        linked = [end["relatedSpdxElement"] for end in bill["relationships"] if end["relationshipType"] == "STATIC_LINK"]
        print(*(parts[name]["name"] for name in linked if "versionInfo" in parts[name]), sep=", ")
        END
        ln -s "$room/arch/usr/bin/bundlefs" /sbin/mount.bundlefs
        as_in_fstab
        rm /sbin/mount.bundlefs
        """#)
      #expect(
        [
          "0 errors\n5\n" + String(repeating: "bundlefs\n", count: 4)
            + "Swift runtime and Foundation, libstdc++ and libgcc, zlib, bzip2, libfuse\nsubstitution's replaced, longer\n",
          "the same\n",
        ].contains(output), "\(output)")
    }

    /// Runs a script in a mount namespace with writable overlays on /usr, /etc and /var. The output lists files that
    /// remain, except dpkg's records.
    private func run(_ fixture: Fixture, _ script: String) throws -> String {
      let whole = #"""
        set -e
        exec 2>&1
        room=$1 main=$2 point=$3 other=$4 scripts=$5
        export BUNDLEFS_BINARY=$6 BUNDLEFS_SKIP_PACKAGES=1
        for folder in usr etc var; do
          mkdir -p "$room/$folder/lower" "$room/$folder/upper" "$room/$folder/work"
          mount --bind "/$folder" "$room/$folder/lower"
          mount -t overlay overlay "/$folder" \
            -o "lowerdir=$room/$folder/lower,upperdir=$room/$folder/upper,workdir=$room/$folder/work"
        done
        as_in_fstab() {
          echo "$main $point bundlefs noauto,substitution=$other 0 0" >> /etc/fstab
          mount "$point"
          cat "$point/replaced.txt"
          umount "$point"
          sed -i '$d' /etc/fstab
        }

        """# + script + #"""

          # Remaining files and new folders.
          for folder in usr etc var; do
            cd "$room/$folder/upper"
            find . ! -type d ! -path './lib/dpkg/*' ! -path './log/*' ! -path './cache/*' ! -path ./fstab
            find . -type d | while IFS= read -r path; do [[ -d ../lower/$path ]] || echo "$path"; done
          done
          cmp "$room/etc/lower/fstab" /etc/fstab
          cd /
          """#
      let room = try fixture.folder.folder("room")
      let command = Command([
        "unshare", "--mount", "--propagation", "private", "bash", "-c", ByteString(whole), "bash", room,
        fixture.main,
        fixture.point, fixture.substitution, Installation.scripts, try Binary.underTest(),
      ])
      let mount = try DaemonMount(command, point: fixture.point, lifetime: 150, timeout: 120)
      guard mount.outcome.status == 0 else {
        throw TestFailure(
          "exit \(mount.outcome.status): \(mount.outcome.outputText)\(mount.outcome.errorText)")
      }
      #expect(try mount.isGone())
      return mount.outcome.outputText
    }
  }
}
