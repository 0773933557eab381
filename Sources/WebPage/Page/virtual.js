// A list that keeps only the visible rows in the document.

/// The rows are inside a sticky box, which the browser scrolls together with the view, so that there is no blank row
/// between a scroll and the next frame.
export class VirtualList {
  #rows = [];
  #frame = 0;
  #first = -1;

  /// - Parameter fill: shows an item in a row's element; called again for the same element with other items.
  constructor(scroller, { rowHeight, make, fill }) {
    Object.assign(this, { scroller, make, fill });
    this.fixedHeight = rowHeight;
    this.space = document.createElement("div");
    this.window = document.createElement("div");
    this.space.className = "virtual-space";
    this.window.className = "virtual-window";
    for (const box of [this.space, this.window]) box.setAttribute("role", "presentation");
    this.space.append(this.window);
    this.scroller.append(this.space);
    this.length = 0;
    this.scroller.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.refresh()).observe(this.scroller);
  }

  get rowHeight() { return typeof this.fixedHeight === "function" ? this.fixedHeight() : this.fixedHeight; }

  setLength(length) {
    this.length = length;
    this.refresh();
  }

  /// Draws all visible rows again, at most once per frame.
  refresh() {
    if (this.#frame !== 0) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#first = -1;
      this.draw();
    });
  }

  draw() {
    const height = this.rowHeight;
    const view = this.scroller.clientHeight;
    this.space.style.height = `${this.length * height}px`;
    this.window.style.height = `${Math.min(view, this.length * height)}px`;
    const top = Math.max(0, Math.min(this.scroller.scrollTop, this.length * height - view));
    const first = Math.floor(top / height);
    const needed = Math.min(this.length - first, Math.ceil(view / height) + 1);
    if (first !== this.#first) this.#fillRows(first, needed);
    const shift = `translateY(${first * height - top}px)`;
    for (const row of this.#rows) row.style.transform = shift;
    this.first = first;
    this.pageSize = Math.max(1, Math.floor(view / height) - 1);
  }

  #fillRows(first, needed) {
    while (this.#rows.length < needed) {
      const row = this.make();
      this.#rows.push(row);
      this.window.append(row);
    }
    this.#rows.forEach((row, index) => {
      row.hidden = index >= needed;
      if (index < needed) this.fill(row, first + index);
    });
    this.#first = first;
  }

  /// Scrolls an item into view.
  reveal(index) {
    const height = this.rowHeight;
    const [top, view] = [this.scroller.scrollTop, this.scroller.clientHeight];
    if (index * height < top) this.scroller.scrollTop = index * height;
    else if ((index + 1) * height > top + view) this.scroller.scrollTop = (index + 1) * height - view;
    this.draw();
  }

  /// The element that shows an item, if any does.
  rowAt(index) { return this.#rows[index - this.first]; }
}
