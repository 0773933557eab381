// The page: which mount and view it shows, and what has changed.

import * as api from "./api.js";
import { announce, byId, count, encoded, el, shown } from "./dom.js";
import { Actions } from "./actions.js";
import { ActivityView } from "./activity.js";
import { FileView } from "./file.js";
import { FilesView } from "./files.js";
import { LayersView } from "./layers.js";
import { ProfilesView } from "./profiles.js";
import { Stack } from "./stack.js";
import { StringsView } from "./strings.js";
import { Tree } from "./tree.js";

/// Beyond this many changed paths at once the page reads the whole tree again.
const PATHS_AT_ONCE = 20;
/// More changed paths are reported by their number.
const PATHS_REPORTED = 200;
const CHANGE_PAUSE = 100;
const RELOAD_PAUSE = 2000;
/// The first rows are shown at once, the next ones after this time.
const STREAM_PAUSE = 150;

/// Its events: mount, layers, tree, changed (paths), version (a path, in a layer that need not win), route (a result),
/// selected.
class App extends EventTarget {
  mount = null;
  stack = null;
  tree = null;
  status = null;
  selected = null;
  #pending = new Map();
  #flushTimer = 0;
  #reading = null;
  #isStale = false;
  #nextReading = 0;
  #readTimer = 0;

  on(name, action) { this.addEventListener(name, (event) => action(event.detail)); }
  tell(name, detail) { this.dispatchEvent(new CustomEvent(name, { detail })); }

  async start() {
    this.actions = new Actions(this);
    this.views = [LayersView, ProfilesView, FilesView, FileView, StringsView, ActivityView].map((View) => new View(this));
    for (const button of document.querySelectorAll("nav button")) {
      button.addEventListener("click", () => this.show(button.dataset.view));
    }
    this.show("files");
    try {
      this.mounts = (await api.mounts()).map((description) => new api.Mount(description));
    } catch (error) {
      return notice(error.status === 401 || error.status === 403
        ? "This address is not valid any more. Open the one that bundlefs ui has printed." : error.message);
    }
    this.#fillSwitcher();
    if (this.mounts.length === 0) return notice("There is no mount to show.");
    await this.use(this.mounts.find((mount) => mount.alive) ?? this.mounts[0]);
  }

  #fillSwitcher() {
    const select = byId("mount-select");
    select.append(...this.mounts.map((mount, index) => el("option", { value: index },
      `${shown(mount.mountPoint)}${mount.alive ? "" : " – does not answer"}`)));
    select.addEventListener("change", () => this.use(this.mounts[select.value]));
    byId("mount-choice").hidden = this.mounts.length < 2;
    byId("mount-name").hidden = this.mounts.length !== 1;
  }

  /// Shows a mount.
  async use(mount) {
    this.events?.close();
    this.#reading?.abort();
    this.#reading = null;
    this.#pending.clear();
    clearTimeout(this.#readTimer);
    [this.#readTimer, this.#isStale] = [0, false];
    Object.assign(this, { mount, stack: new Stack(mount), tree: null, status: null, selected: null });
    byId("mount-name").textContent = shown(mount.mountPoint);
    document.title = `${shown(mount.mountPoint)} – bundlefs`;
    notice(silence(mount));
    byId("mount-select").value = this.mounts.indexOf(mount);
    this.tell("mount");
    this.#listen();
    this.status = await mount.status().catch(() => null);
    if (this.mount === mount) this.tell("status");
  }

  #listen() {
    const { mount } = this;
    const events = this.events = mount.events();
    const read = (name, action) => events.addEventListener(name, ({ data }) => {
      let value = {};
      // What was cut by an overflow is reported by that.
      try { value = JSON.parse(data || "{}"); } catch { return; }
      action(value);
    });
    // Changes before the connection are not reported: the page reads everything after it.
    events.onopen = () => { connection("Live", true); notice(silence(mount)); this.reload(); };
    events.onerror = () => {
      if (this.tree === null) this.reload();
      connection("Disconnected", false);
      notice("bundlefs ui does not answer. It has probably ended; this is the last state.");
    };
    read("change", (event) => this.changed(event.path, event));
    read("version", (event) => this.tell("version", event.path));
    read("changes", (event) => this.#many(event));
    read("overflow", (event) => this.#many(event));
    read("layers", () => this.reload());
    read("route", (result) => this.tell("route", result));
    read("ended", () => {
      events.close();
      connection("Unmounted", false);
      notice(`${shown(mount.mountPoint)} has been unmounted. This is its last state.`);
    });
  }

  /// Reads the layers and the tree again.
  async reload() {
    const { mount, stack } = this;
    const readLayers = async () => {
      const layers = await mount.layers();
      if (this.mount !== mount) return;
      stack.update(layers);
      this.tell("layers");
    };
    try {
      await Promise.all([readLayers(), this.#readTree()]);
      if (mount.alive || this.mount !== mount) return;
      mount.alive = true;
      notice("");
    } catch (error) {
      if (error.name !== "AbortError") notice(error.message);
    }
  }

  async #readTree() {
    const { mount } = this;
    this.#reading?.abort();
    const reading = this.#reading = new AbortController();
    // What changes from now on may be missed by the walk.
    this.#isStale = false;
    const begin = performance.now();
    let shownNext = 0;
    const tree = new Tree(mount.main);
    const isFirst = this.tree === null;
    if (this.tree !== null) [tree.closed, tree.closedInFilter] = [this.tree.closed, this.tree.closedInFilter];
    if (isFirst) this.tree = tree;
    await mount.tree({
      signal: reading.signal,
      onEntries: (entries) => {
        tree.append(entries);
        if (!isFirst || this.mount !== mount || performance.now() < shownNext) return;
        shownNext = performance.now() + STREAM_PAUSE;
        this.tell("tree");
      },
    });
    if (this.#reading !== reading || this.mount !== mount) return;
    tree.isComplete = true;
    [this.tree, this.#reading] = [tree, null];
    this.#nextReading = performance.now() + Math.max(RELOAD_PAUSE, 4 * (performance.now() - begin));
    this.tell("tree");
    if (isFirst) announce(count(tree.entries.length, "entry", "entries"));
    this.#schedule();
  }

  /// Reads a path again that has not been reported as changed.
  async reread(path) {
    if (this.#reading !== null || !await this.#readPaths(new Map([[path, {}]])).catch(() => false)) return;
    this.tell("tree");
  }

  /// Takes note of a changed path, which is read soon.
  changed(path, event) {
    this.#pending.set(path, event);
    this.#schedule();
  }

  #many(event) {
    this.tell("many", event);
    this.#isStale = true;
    this.#schedule();
  }

  #schedule() {
    if (this.#flushTimer !== 0 || this.#pending.size === 0 && !this.#isStale) return;
    this.#flushTimer = setTimeout(() => {
      this.#flushTimer = 0;
      this.#flush();
    }, CHANGE_PAUSE);
  }

  async #flush() {
    const { mount, tree } = this;
    // The end of the reading flushes again; the reading that is to come takes all.
    if (tree === null || this.#reading !== null || this.#readTimer !== 0) return;
    const changes = new Map(this.#pending);
    this.#pending.clear();
    try {
      const isWhole = this.#isStale || changes.size > PATHS_AT_ONCE || changes.has("");
      const isRead = !isWhole && await this.#readPaths(changes);
      if (this.mount !== mount) return;
      if (!isRead) return this.#readLater(changes);
      this.tell("tree");
      this.tell("changed", withoutParents(changes));
    } catch (error) {
      notice(error.message);
    }
  }

  /// Reads the whole tree, but not all the time.
  #readLater(changes) {
    for (const [path, event] of changes) if (!this.#pending.has(path)) this.#pending.set(path, event);
    this.#isStale = true;
    this.#readTimer = setTimeout(async () => {
      this.#readTimer = 0;
      // The end of the reading flushes.
      if (this.#reading !== null) return;
      const taken = new Map(this.#pending);
      this.#pending.clear();
      await this.#readTree().catch((error) => { if (error.name !== "AbortError") notice(error.message); });
      if (taken.size > PATHS_REPORTED) this.tell("many", { count: taken.size });
      else this.tell("changed", withoutParents(taken));
    }, Math.max(0, this.#nextReading - performance.now()));
  }

  /// - Returns: false if the server does not read parts of the tree.
  async #readPaths(changes) {
    const { mount, tree } = this;
    const wanted = new Set([...changes.keys()].map((path) => tree.listedParent(path)));
    for (const path of wanted) {
      if ([...wanted].some((other) => path.startsWith(`${other}/`))) continue;
      const entries = [];
      const address = encoded(tree.get(path) ?? { path, encodedPath: changes.get(path)?.encodedPath });
      try {
        await mount.tree({ path: address, onEntries: (batch) => entries.push(...batch) });
      } catch (error) {
        if (error.isUnsupported || error.status === 400) return false;
        throw error;
      }
      if (this.tree !== tree) return true;
      tree.replace(path, entries);
    }
    return true;
  }

  /// Selects an entry by its path.
  select(path) {
    this.selected = path;
    this.tell("selected");
  }

  /// Shows a view: layers, files, file, strings or activity. Wide windows show the first three at once.
  show(view) {
    document.body.dataset.view = view;
    const current = view === "file" ? "files" : view;
    for (const button of document.querySelectorAll("nav button")) {
      if (button.dataset.view === current) button.setAttribute("aria-current", "page");
      else button.removeAttribute("aria-current");
    }
    byId("strings").hidden = view !== "strings";
    byId("activity").hidden = view !== "activity";
    this.tell("view", view);
  }
}

/// A change in a folder is reported for the folder, too.
function withoutParents(changes) {
  const paths = [...changes.keys()];
  const isParent = (path) => paths.some((other) => path === "" ? other !== "" : other.startsWith(`${path}/`));
  return new Map(paths.filter((path) => !isParent(path)).map((path) => [path, changes.get(path)]));
}

/// What is said of a mount that has not answered.
const silence = (mount) => mount.alive ? "" : `${shown(mount.mountPoint)} does not answer.`;

function notice(text) {
  byId("notice").textContent = text;
  byId("notice").hidden = text === "";
}

function connection(text, isLive) {
  byId("connection").textContent = text;
  byId("connection").classList.toggle("is-live", isLive);
}

new App().start();
