/// How a report looks, and what its browser may do.
enum ReportStyle {
  /// The number of colours of layers.
  static let colours = 8

  /// Nothing is loaded, and nothing runs: pictures are in the page, and the style sheet is the one with this hash.
  static let policy =
    "default-src 'none'; img-src data:; style-src 'sha256-\(hash)'; base-uri 'none'; form-action 'none'"

  /// The SHA-256 of the style sheet, in Base64. A test computes it.
  private static let hash = "Iu1D2xOgFaUjVcQLUR7J7jcV6CvrgqYhX5zm/MUNYAY="

  /// The colours are those of the page of `bundlefs ui`.
  static let sheet = """

    :root {
      color-scheme: light dark;
      --page: #f3f4f6; --surface: #fff; --line: #dfe2e7; --text: #1a1d23; --muted: #596070; --check: #e9ebef;
      --warning: #8a5300; --accent: #1f5fd0; --hidden: #6d7482;
      --c0: #0072b2; --c1: #e69f00; --c2: #009e73; --c3: #cc79a7; --c4: #56b4e9; --c5: #d55e00; --c6: #b8a800;
      --c7: #5b4a9c; --main: #6b7280;
    }
    @media (prefers-color-scheme: dark) {
      :root {
        --page: #121418; --surface: #1a1d23; --line: #2e333c; --text: #e6e8ec; --muted: #a3abb8; --check: #262a32;
        --warning: #f2bb62; --accent: #7fb0ff; --hidden: #8d95a3;
        --c0: #3d9fdb; --c2: #1fbf90; --c5: #f0803c; --c7: #9d8be0; --main: #8d95a3;
      }
    }
    .c0 { --layer: var(--c0); } .c1 { --layer: var(--c1); } .c2 { --layer: var(--c2); } .c3 { --layer: var(--c3); }
    .c4 { --layer: var(--c4); } .c5 { --layer: var(--c5); } .c6 { --layer: var(--c6); } .c7 { --layer: var(--c7); }
    .c-main { --layer: var(--main); }
    * { box-sizing: border-box; }
    body {
      max-width: 1080px; margin: 0 auto; padding: 24px 20px 64px; background: var(--page); color: var(--text);
      font: 14px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif;
    }
    h1 { margin: 0; font-size: 22px; line-height: 1.3; overflow-wrap: anywhere; }
    h2 { margin: 0 0 8px; font-size: 15px; }
    p { margin: 0; }
    ul, ol { margin: 0; padding: 0; list-style: none; }
    .maker { color: var(--accent); font-weight: 650; font-size: 13px; }
    .hint, .facts, .path { color: var(--muted); font-size: 13px; }
    section { margin-top: 20px; padding: 16px 18px; border: 1px solid var(--line); border-radius: 10px; background: var(--surface); }
    .tree ul { margin-left: 7px; padding-left: 14px; border-left: 1px solid var(--line); }
    .tree li { margin-top: 6px; }
    summary { padding: 1px 4px; border-radius: 5px; cursor: default; overflow-wrap: anywhere; }
    summary:focus-visible, .scroll:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
    .entry { padding-left: 8px; border-left: 4px solid var(--layer); overflow-wrap: anywhere; }
    .name { font-weight: 600; }
    .is-hidden > .entry .name, .is-hidden > details > summary .name { color: var(--hidden); text-decoration: line-through; }
    .verdict { color: var(--muted); font-size: 13px; }
    .layer { white-space: nowrap; }
    .badge {
      display: inline-block; min-width: 18px; padding: 0 4px; border: 1.5px solid var(--layer); border-radius: 4px;
      background: color-mix(in srgb, var(--layer) 20%, var(--surface)); font-size: 11px; font-weight: 650; line-height: 15px;
      text-align: center;
    }
    .versions { display: flex; flex-wrap: wrap; gap: 6px 10px; margin: 4px 0 10px 12px; }
    .versions li { margin: 0; padding: 4px 9px; border: 1px solid var(--line); border-radius: 7px; }
    .versions .wins { border-color: var(--layer); }
    .tag { padding: 0 6px; border-radius: 8px; background: var(--check); font-size: 11px; font-weight: 600; }
    .no-picture { color: var(--muted); font-size: 12px; }
    img {
      display: block; max-width: 168px; max-height: 120px; margin: 4px 0 6px; border-radius: 4px;
      background: repeating-conic-gradient(var(--check) 0 25%, var(--surface) 0 50%) 0 0 / 16px 16px;
    }
    .scroll { margin-top: 8px; overflow-x: auto; }
    table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
    th, td { padding: 5px 12px 5px 0; border-top: 1px solid var(--line); text-align: left; vertical-align: top; font-weight: 400; }
    thead th { border-top: 0; color: var(--muted); font-size: 12px; }
    tbody th { white-space: nowrap; font-weight: 600; }
    td:nth-child(n + 3), th:nth-child(n + 3) { padding-right: 0; padding-left: 12px; text-align: right; }
    .path { overflow-wrap: anywhere; min-width: 180px; }
    .problem, .faults { color: var(--warning); font-size: 13px; overflow-wrap: anywhere; }
    @media print { body { background: none; } section { break-inside: auto; } }

    """
}
