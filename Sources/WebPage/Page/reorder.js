// Moving items of a list, by dragging a grip or by its keys: Space lifts and drops, the arrows move, Escape cancels.

import { announce } from "./dom.js";

export class Reordering {
  #item = null;
  #before = [];
  #pointer = null;

  /// - Parameters:
  ///   - list: an element whose children with the class "movable" have a grip.
  ///   - name: an item's name as it is spoken.
  ///   - onDrop: takes the movable items in their new order.
  constructor(list, { name, onDrop }) {
    Object.assign(this, { list, name, onDrop });
    list.addEventListener("keydown", (event) => this.#key(event));
    list.addEventListener("pointerdown", (event) => this.#grab(event));
    list.addEventListener("pointermove", (event) => this.#drag(event));
    list.addEventListener("pointerup", (event) => { if (event.pointerId === this.#pointer) this.#drop(); });
    list.addEventListener("pointercancel", () => this.#cancel());
    list.addEventListener("focusout", (event) => {
      // An item that moves in the document loses the focus, and gets it back.
      if (this.#item !== null && this.#pointer === null && !this.isMoving && !list.contains(event.relatedTarget)) {
        this.#cancel();
      }
    });
  }

  get isActive() { return this.#item !== null; }
  get #items() { return [...this.list.children].filter((item) => item.classList.contains("movable")); }

  #grip(target) { return target.closest?.(".grip"); }

  #lift(item) {
    this.#item = item;
    this.#before = this.#items;
    item.classList.add("is-lifted");
    item.querySelector(".grip").setAttribute("aria-pressed", "true");
  }

  #key(event) {
    const grip = this.#grip(event.target);
    if (!grip) return;
    const isToggle = event.key === " " || event.key === "Enter";
    if (this.#item === null) {
      if (!isToggle) return;
      this.#lift(grip.closest(".movable"));
      announce(`${this.#position("Lifted")} The arrow keys move it, Space drops it, Escape cancels.`);
    } else if (isToggle) {
      this.#drop();
    } else if (event.key === "Escape") {
      this.#cancel();
    } else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      this.#move(this.#items.indexOf(this.#item) + (event.key === "ArrowUp" ? -1 : 1));
      announce(this.#position("Moved"));
      grip.focus();
    } else {
      return;
    }
    event.preventDefault();
  }

  #position(what) {
    const items = this.#items;
    return `${what} ${this.name(this.#item)}: position ${items.indexOf(this.#item) + 1} of ${items.length}.`;
  }

  #move(index) {
    const items = this.#items;
    if (index < 0 || index >= items.length) return;
    this.isMoving = true;
    const others = items.filter((item) => item !== this.#item);
    if (index < others.length) others[index].before(this.#item);
    else others.at(-1)?.after(this.#item);
    this.isMoving = false;
  }

  #grab(event) {
    const grip = this.#grip(event.target);
    if (!grip || event.button !== 0 || this.#item !== null) return;
    event.preventDefault();
    grip.focus();
    this.#pointer = event.pointerId;
    this.list.setPointerCapture(event.pointerId);
    this.#lift(grip.closest(".movable"));
  }

  #drag(event) {
    if (event.pointerId !== this.#pointer) return;
    const others = this.#items.filter((item) => item !== this.#item);
    const index = others.filter((item) => {
      const box = item.getBoundingClientRect();
      return event.clientY > box.top + box.height / 2;
    }).length;
    if (index !== this.#items.indexOf(this.#item)) this.#move(index);
  }

  #settle() {
    const item = this.#item;
    item.classList.remove("is-lifted");
    item.querySelector(".grip").setAttribute("aria-pressed", "false");
    [this.#item, this.#pointer] = [null, null];
    return item;
  }

  #drop() {
    if (this.#item === null) return;
    const sentence = this.#position("Dropped");
    const item = this.#settle();
    item.querySelector(".grip").focus();
    const items = this.#items;
    if (items.every((other, index) => other === this.#before[index])) return announce("Not moved.");
    announce(sentence);
    this.onDrop(items);
  }

  #cancel() {
    if (this.#item === null) return;
    this.isMoving = true;
    this.list.prepend(...this.#before);
    this.isMoving = false;
    const item = this.#settle();
    item.querySelector(".grip").focus();
    announce(`${this.name(item)} is where it was.`);
  }
}
