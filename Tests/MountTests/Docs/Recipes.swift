import TestSupport

/// The recipes.
enum Recipes {
  static let document = Document(
    "Recipes.md",
    sections: [
      DocumentedSection(
        title: "Mods over a game's own directory", kinds: [.commands, .commands, .commands], before: game,
        remarks: [
          "which mod changes what; with --json also which others it overrides",
          "the mods, topmost first, then the game",
          "how many names each one contributes: one has none?", "by the last component of its path",
          "this one only",
          "the game as shipped", "the game as it was installed",
        ],
        after: "[[ $(~/Games/Keep/keep) == shipped ]]"),
      DocumentedSection(
        title: "Mods for the game only", kinds: [.commands, .script], before: game,
        replacing: ["%command%": "~/Games/Keep/keep", "/srv/": "HOME/srv/"]),
      DocumentedSection(
        title: "A theme, with hot reload", kinds: [.commands, .commands, .commands], before: .firstSession,
        programs: ["vite": "cat \"$1/logo.svg\""]),
      DocumentedSection(
        title: "Several variants under test at once", kinds: [.commands], before: .firstSession,
        failing: ["diff -r fr next"]),
      DocumentedSection(title: "Hiding a file", kinds: [.commands], before: .firstMount),
      DocumentedSection(
        title: "An application in an archive", kinds: [.commands, .commands],
        remarks: ["any zip program will do"],
        programs: [
          "pip": """
          [[ $* == 'download --no-deps requests' ]] || exit
          mkdir wheel wheel/requests
          echo '# the API' >wheel/requests/api.py
          (cd wheel && python3 -m zipfile -c ../requests-2.32.3-py3-none-any.whl requests)
          """
        ]),
      DocumentedSection(
        title: "Differences as a tree", kinds: [.commands, .output],
        before: .firstSession + """

          mkdir -p Theme/Resources
          echo help >App.app/Resources/Help.pdf
          echo dark >Theme/Resources/dark.css
          : >Overrides/Resources/.wh.Help.pdf
          bundlefs App.app mnt -o substitution=Overrides:Theme
          """),
      DocumentedSection(
        title: "Posting URLs",
        kinds: [
          .commands, .output, .commands, .output, .commands, .output, .commands, .output, .commands,
          .commands,
        ],
        before: .firstMount,
        remarks: ["the same routes, no results"],
        background: [
          #"bundlefs listen mnt Animal | while read -r notification; do echo "got $notification"; done"#
        ],
        failing: ["echo 'ccfurlresponder://color/red/rouge' > mnt/.routes"],
        after: "bundlefs match mnt ccfurlresponder://animal/platypus/3.1/4"),
      DocumentedSection(
        title: "Driving an application under test", kinds: [.commands], before: .firstMount,
        background: ["bundlefs listen mnt Show | while read -r line; do …; done &"],
        replacing: ["…": #"echo "$line""#],
        after: """
          bundlefs unmount mnt
          wait
          grep -q '"Screen":"settings"' "$printed"
          """),
      // It needs an image and a container engine.
      DocumentedSection(title: "In containers", kinds: [.other, .other]),
      DocumentedSection(title: "Podman's images and containers", kinds: [.other, .other]),
      // It changes the machine.
      DocumentedSection(title: "Hundreds of mounts", kinds: [.other]),
      // Another test of this suite looks for what the queries name.
      DocumentedSection(title: "Watching mounts with Prometheus", kinds: [.other]),
      DocumentedSection(
        title: "Finding resources", kinds: [.commands, .output, .commands, .commands, .commands],
        before: .firstSession + "\nbundlefs App.app mnt -o substitution=Overrides,languages=fr:en",
        remarks: ["all: path, language, MIME type, layer", "asks your mounts and root's, the newest first"]),
    ])

  private static let game = """
    mkdir -p ~/Games/Keep mods/balance mods/balance-2 textures/textures
    printf '#!/bin/bash\\ncat ~/Games/Keep/rules\\n' >~/Games/Keep/keep
    chmod +x ~/Games/Keep/keep
    echo shipped >~/Games/Keep/rules
    echo balanced >mods/balance/rules
    echo balanced again >mods/balance-2/rules
    echo stone >textures/textures/stone
    (cd textures && python3 -m zipfile -c ../mods/hd-textures.zip textures)
    mkdir -p srv
    cp -a Games/Keep srv/Keep
    cp -a mods/balance srv/mods
    """
}
