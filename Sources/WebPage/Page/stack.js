// The layers as the page names and colours them. A layer keeps its colour when it moves or is switched off.

const COLOURS = 8;
const memory = new Map();

// Of this window alone: a server of another user can get the port later, and would read what is kept for its address.

function stored(key, fallback) {
  try { return JSON.parse(sessionStorage.getItem(key)) ?? fallback; } catch { return memory.get(key) ?? fallback; }
}

function store(key, value) {
  memory.set(key, value);
  try { sessionStorage.setItem(key, JSON.stringify(value)); } catch { /* private windows may refuse */ }
}

/// The path without `@/` and the folder at which the layer is laid.
function ownPath(row) { return row.place ? row.path.slice(0, -(row.place.length + 2)) : row.path; }

export class Stack {
  /// All layers, the ones that are switched off included, top first.
  rows = [];
  #byPath = new Map();

  constructor(mount) {
    this.key = `layers:${mount.mountPoint}:${mount.main}`;
    this.colours = stored(`${this.key}:colours`, {});
    this.off = stored(`${this.key}:off`, []);
  }

  /// Takes the mount's layers and puts the ones that are off where they were.
  update(layers) {
    const isOn = new Set(layers.map((layer) => layer.encodedPath));
    this.off = this.off.filter((row) => !isOn.has(row.encodedPath));
    const rows = layers.map((layer) => ({ ...layer, isOn: true, isMain: layer.role === "MAIN" }));
    for (const row of this.off) {
      const above = row.above ? rows.findIndex((other) => other.encodedPath === row.above) : -1;
      rows.splice(Math.min(above + 1, rows.length - 1), 0, { ...row, isOn: false });
    }
    rows.forEach((row, index) => this.#identify(row, index));
    this.rows = rows;
    this.#byPath = new Map(rows.map((row) => [row.path, row]));
    this.#shorten();
    this.#save();
  }

  #identify(row, index) {
    if (row.isMain) row.colour = "main";
    else row.colour = this.colours[row.encodedPath] ??= this.#freeColour();
    row.badge = row.isMain ? "M" : String(index + 1);
  }

  #freeColour() {
    const uses = Array.from({ length: COLOURS }, () => 0);
    for (const colour of Object.values(this.colours)) uses[colour] += 1;
    return uses.indexOf(Math.min(...uses));
  }

  /// The last component names a layer, with as many before it as make it unique, and the folder at which it is laid.
  #shorten() {
    for (const row of this.rows) {
      const parts = ownPath(row).split("/").filter((part) => part !== "");
      const others = this.rows.filter((other) => ownPath(other) !== ownPath(row)).map((other) => `/${ownPath(other)}`);
      let size = 1;
      const name = () => parts.slice(-size).join("/");
      while (size < parts.length && others.some((other) => other.endsWith(`/${name()}`))) size += 1;
      row.name = (name() || row.path) + (row.place ? ` at ${row.place}` : "");
    }
  }

  /// The layer with this path as the tree names it.
  named(path) { return this.#byPath.get(path); }
  /// The layer with this number in the mount.
  at(number) { return this.active[number]; }
  get active() { return this.rows.filter((row) => row.isOn); }
  get substitutions() { return this.active.filter((row) => !row.isMain); }
  get top() { return this.substitutions[0]; }

  /// Remembers a layer that leaves the stack.
  switchOff(row) {
    const above = this.rows[this.rows.indexOf(row) - 1];
    const { role, path, encodedPath, place, kind, problems } = row;
    this.off.push({ role, path, encodedPath, place, kind, problems, above: above?.encodedPath });
    this.#save();
  }

  /// Keeps the place of the layers that are off in a new order.
  arrange(rows) {
    for (const row of this.off) {
      const at = rows.findIndex((other) => other.encodedPath === row.encodedPath);
      row.above = rows[at - 1]?.encodedPath;
    }
    this.off.sort((a, b) => place(rows, a) - place(rows, b));
    this.#save();
  }

  forget(row) {
    this.off = this.off.filter((other) => other.encodedPath !== row.encodedPath);
    this.#save();
  }

  #save() {
    store(`${this.key}:colours`, this.colours);
    store(`${this.key}:off`, this.off);
  }
}

const place = (rows, row) => rows.findIndex((other) => other.encodedPath === row.encodedPath);
