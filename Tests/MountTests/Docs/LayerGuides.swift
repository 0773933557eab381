import TestSupport

/// The guides to layers that change.
enum LayerGuides {
  static let changing = Document(
    "ChangingLayers.md",
    sections: [
      DocumentedSection(
        title: "Overview", kinds: [.commands], before: layers,
        remarks: [
          "the layers, topmost first, MAIN last", "on top of all others",
          "its files appear in the mount's folder Data",
          "right above MAIN", "these two, whatever was there", "MAIN alone",
        ],
        after: "[[ $(bundlefs layers mnt) == 'MAIN  directory  '* ]]"),
      DocumentedSection(
        title: "A layer at a folder", kinds: [.commands],
        before: """
          mkdir -p Game mnt patch
          echo patched >patch/main.lua
          echo sharp >wall.dds
          python3 -m zipfile -c hd.zip wall.dds
          python3 -m zipfile -c ui.zip patch/main.lua
          """,
        after: "[[ $(cat mnt/Data/wall.dds mnt/Data/Scripts/main.lua) == $'sharp\\npatched' ]]"),
      DocumentedSection(
        title: "The list", kinds: [.commands, .output],
        before: layers + """

          for i in {1..3016}; do : >App.app/$i; done
          for i in {1..12}; do : >mods/ui/$i.png; done
          rm mods/ui/button.png
          (mkdir sound && cd sound && touch .wh.1 .wh.2 && python3 -m zipfile -c ../mods/sound.zip .wh.1 .wh.2)
          bundlefs layers mnt set mods/ui:mods/sound.zip
          """),
      DocumentedSection(
        title: "Profiles", kinds: [.commands, .other],
        before: layers + "\nbundlefs layers mnt save day; mkdir night",
        remarks: [
          "the layers and options of the mount, by name", "a star marks the one that the mount has",
          "switches to its layers, in one step", "a new mount with all of it",
        ],
        replacing: ["App.app mnt -o": "App.app night -o"]),
      // MountHelperTests runs them as root's fstab would have them.
      DocumentedSection(title: "By mount(8) and fstab", kinds: [.other]),
      DocumentedSection(
        title: "By the control file", kinds: [.commands],
        before: layers + "\ncp mods/sound.zip 'mods/sound pack.zip'", replacing: ["/home/me": "HOME"],
        after: "[[ $(bundlefs layers mnt | sed -n 2p) == *'/mods/sound pack.zip' ]]"),
    ])

  static let writing = Document(
    "Writing.md",
    sections: [
      DocumentedSection(
        title: "Overview", kinds: [.commands],
        before: .firstSession + "echo help >App.app/Resources/Help.pdf",
        remarks: [
          "writes Overrides/Resources/logo.svg", "makes a whiteout in Overrides/Resources", "lists both",
        ],
        after: """
          [[ $(bundlefs diff mnt) == *'hides      Resources/Help.pdf'*'overrides  Resources/logo.svg'* ]]
          [[ $(cat Overrides/Resources/logo.svg) == 'my own logo' ]]
          [[ ! -e mnt/Resources/Help.pdf && -e App.app/Resources/Help.pdf ]]
          """),
      DocumentedSection(
        title: "Taking it back, and overriding without writing", kinds: [.commands], before: .firstMount,
        remarks: [
          "what the layers override, add and hide", "asks, then removes it from Overrides",
          "copies the directory to Overrides, ready to be edited",
        ],
        replacing: ["revert mnt Resources/logo.svg": "revert mnt Resources/logo.svg --yes"],
        after: "[[ $(cat Overrides/Resources/logo.svg) == 'the logo as shipped' ]]"),
      DocumentedSection(
        title: "Applying it", kinds: [.commands],
        before: .firstSession + "mkdir Theme; bundlefs App.app mnt -o writable,substitution=Overrides:Theme",
        remarks: [
          "lists what would be done", "asks, then writes what Overrides has there into App.app",
          "all of it, into another layer",
        ],
        replacing: ["apply mnt Resources": "apply mnt Resources --yes", "--to Theme": "--to Theme --yes"],
        after: "[[ $(cat App.app/Resources/logo.svg) == 'my own logo' ]]"),
    ])

  static let names = Document(
    "NamesWithoutCase.md",
    sections: [
      DocumentedSection(
        title: "Writing", kinds: [.commands],
        before: "mkdir -p ~/Games/Keep/Data mnt; echo 'fullscreen=0' >~/Games/Keep/Data/Settings.ini",
        remarks: ["over/Data/Settings.ini, as ~/Games/Keep spells it"],
        after: "[[ $(cat over/Data/Settings.ini) == 'fullscreen=1' ]]")
    ])

  private static let layers =
    .firstSession + """
      mkdir -p mods/ui
      echo button >mods/ui/button.png
      echo bell >bell.wav
      python3 -m zipfile -c mods/sound.zip bell.wav
      cp mods/sound.zip mods/hd.zip
      bundlefs App.app mnt
      """
}
