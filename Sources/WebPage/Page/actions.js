// Changes to the top layer and the bar that undoes them.

import { announce, byId, count, encoded, lastName, parentPath, shown } from "./dom.js";

export class Actions {
  #undoable = [];
  #redo = null;
  #isUndoing = false;

  constructor(app) {
    this.app = app;
    app.on("mount", () => this.#load(true));
    byId("undo-button").addEventListener("click", () => this.#redo === null ? this.undo() : this.#again());
    byId("undo-close").addEventListener("click", () => this.#hideBar());
    document.addEventListener("keydown", (event) => {
      const isText = event.target.matches("input, textarea, select");
      const isUndo = (event.ctrlKey || event.metaKey) && !event.shiftKey && event.key.toLowerCase() === "z";
      if (!isUndo || isText || this.#undoable.length === 0) return;
      event.preventDefault();
      this.undo();
    });
  }

  /// Asks the server what can be undone: more than this page has done since it was loaded.
  async #load(isNew = false) {
    const { mount } = this.app;
    if (isNew) this.#undoable = [];
    const known = this.#undoable;
    const edits = await mount.edits().catch(() => null);
    if (edits === null || this.app.mount !== mount) return;
    // The list may be older than what was done meanwhile.
    if (this.#undoable !== known) return this.#load();
    this.#undoable = edits.map((edit) => ({ label: shown(edit.label), undo: edit.undo, mount }));
  }

  /// Does a change and offers to undo it. Errors are shown.
  /// - Returns: whether it was done.
  async run(label, request) {
    const { mount } = this.app;
    try {
      const reply = await request(mount);
      this.#done({ label: shown(reply.label ?? label), undo: reply.undo, mount }, reply.note);
      return true;
    } catch (error) {
      this.fail(error.message);
      this.#load();
      return false;
    }
  }

  override(entry) { return this.#change("override", "Overrode", entry); }
  revert(entry) { return this.#change("revert", "Reverted", entry); }
  hide(entry) { return this.#change("hide", "Hid", entry); }

  async #change(verb, past, entry) {
    const isDone = await this.run(`${past} ${shown(lastName(entry.path))}`,
      (mount) => mount.change(verb, [encoded(entry)]));
    if (isDone) this.app.changed(entry.path);
  }

  /// Puts a file at a path into the top layer.
  async replace(target, file) {
    const name = shown(lastName(target.path));
    this.#show(`Writing ${name}…`, "");
    const isDone = await this.run(`Replaced ${name}`, (mount) => mount.put(encoded(target), file));
    if (isDone) this.app.changed(target.path);
  }

  /// Puts dropped files into a folder of the top layer.
  /// - Parameter place: a folder, a file in it, or null for the root.
  async add(place, files) {
    const folder = place === null ? "" : place.isFolder ? place.path : parentPath(place.path);
    const address = place === null ? "" : place.isFolder ? encoded(place) : parentPath(encoded(place));
    for (const file of files) {
      const path = folder === "" ? file.name : `${folder}/${file.name}`;
      const name = encodeURIComponent(file.name);
      await this.replace({ path, encodedPath: address === "" ? name : `${address}/${name}` }, file);
    }
    if (files.length > 1) announce(`${count(files.length, "file")} written`);
  }

  #done(action, note) {
    if (action.undo !== undefined) this.#undoable = [...this.#undoable, action];
    this.#redo = null;
    this.#show(note ? `${action.label}: ${shown(note)}` : action.label, action.undo === undefined ? "" : "Undo");
  }

  async undo() {
    const action = this.#undoable.at(-1);
    if (action === undefined || this.#isUndoing) return;
    this.#isUndoing = true;
    try {
      const reply = await action.mount.undo(action.undo);
      this.#undoable = this.#undoable.filter((other) => other !== action);
      this.#redo = reply.undo === undefined ? null : { ...action, undo: reply.undo };
      this.#show(`Undid: ${action.label}`, this.#redo === null ? "" : "Redo");
      this.app.reload();
    } catch (error) {
      this.fail(error.message);
      this.#load();
    } finally {
      this.#isUndoing = false;
    }
  }

  async #again() {
    const action = this.#redo;
    if (await this.run(action.label, () => action.mount.undo(action.undo))) this.app.reload();
  }

  fail(sentence) { this.#show(sentence, "", true); }

  /// - Parameter button: its text; empty for none.
  #show(text, button, isError = false) {
    const bar = byId("undo-bar");
    byId("undo-text").textContent = text;
    byId("undo-button").hidden = button === "";
    byId("undo-button").textContent = button;
    bar.classList.toggle("is-error", isError);
    bar.hidden = false;
    announce(button === "Undo" ? `${text}. Undo with Control Z.` : text);
  }

  #hideBar() { byId("undo-bar").hidden = true; }
}
