import TestSupport

/// The README.
enum Readme {
  static let document = Document(
    "README.md",
    sections: [
      // CI runs them.
      DocumentedSection(title: "Two commands", kinds: [.other]),
      DocumentedSection(
        title: "A first session",
        kinds: [.commands, .commands, .commands, .commands, .commands, .commands, .commands],
        remarks: ["both files, once each", "in the other terminal"],
        background: ["bundlefs listen mnt Animal"],
        after: """
          grep -q '"Name":"spiny anteater"' "$printed"
          ! mountpoint -q mnt
          [[ $(cat App.app/Resources/logo.svg) == 'the logo as shipped' ]]
          """),
      // Another test of this suite compares it with the help.
      DocumentedSection(title: "Usage", kinds: [.other]),
      DocumentedSection(
        title: "How files are merged", kinds: [.commands, .output], before: mergedLayers),
      // InstallTests and the package tests run them, MountHelperTests the line in fstab.
      DocumentedSection(title: "Installing", kinds: [.other, .other]),
      // OverlayTests of BundleResources runs the first; the others are Swift.
      DocumentedSection(title: "The Swift library", kinds: [.other, .other, .other]),
    ])

  private static let mergedLayers = """
    mkdir -p App.app/Resources Overrides/Resources Theme/Resources Fonts mnt
    for i in {1..42}; do echo "$i" >"App.app/$i"; done
    echo help >App.app/Resources/Help.pdf
    echo logo >App.app/Resources/logo.svg
    echo logo >Theme/Resources/logo.svg
    echo dark >Theme/Resources/dark.css
    echo mine >Overrides/Resources/logo.svg
    : >Overrides/Resources/.wh.Help.pdf
    bundlefs App.app mnt -o substitution=Overrides:Theme:Fonts
    """
}
