// A list that renders only the rows on the screen. It has one tab stop. aria-activedescendant names the active row.
import { h } from "./dom.js";

const margin = 6; // rows beyond the edges, so that there are no gaps while scrolling

export class Virtual {
  /**
   * columns are {title, class}; render(item, index) returns the cells of a row; keyOf(item) returns its key; open(item) is called on Enter
   * and clicks. role is grid or treegrid; attributes(item, index) returns the attributes of its row.
   */
  constructor({ role, label, columns, render, keyOf, open, attributes, keys, chosen }) {
    Object.assign(this, { columns, render, keyOf, open, attributes, keys, chosen });
    this.items = [];
    this.active = 0;
    this.prefix = `row-${Virtual.count++}-`;
    this.head = h("div", { role: "row", class: "row head", "aria-rowindex": 1 },
      columns.map((column) => h("div", { role: "columnheader", class: `cell ${column.class}` }, column.title)));
    this.body = h("div", { role: "rowgroup", class: "rows" });
    this.element = h("div", {
      role, class: "virtual", tabindex: 0, "aria-label": label, "aria-colcount": columns.length,
      onscroll: () => this.paint(), onkeydown: (event) => this.onKey(event), onclick: (event) => this.onClick(event),
    }, h("div", { role: "rowgroup", class: "heads" }, this.head), this.body);
    this.observer = new ResizeObserver(() => this.paint(true));
    this.observer.observe(this.element);
    this.painted = new Map();
  }

  destroy() { this.observer.disconnect(); }

  /** set shows other items. The active item stays active. */
  set(items) {
    const key = this.items[this.active] && this.keyOf(this.items[this.active]);
    this.items = items;
    const at = key && this.moved ? items.findIndex((item) => this.keyOf(item) === key) : 0;
    this.active = Math.max(0, Math.min(at < 0 ? this.active : at, items.length - 1));
    this.element.setAttribute("aria-rowcount", items.length + 1);
    this.paint(true);
    if (items.length > 0 && !this.shown) {
      this.shown = true;
      performance.clearMarks("shown");
      performance.mark("shown"); // for measurements
    }
  }

  rowHeight() {
    return parseFloat(getComputedStyle(this.element).getPropertyValue("--row")) || 30;
  }

  /** paint renders the rows on the screen: all of them, or those that became visible. */
  paint(all) {
    const height = this.rowHeight();
    const view = this.element.clientHeight || 600;
    const from = Math.max(0, Math.floor(this.element.scrollTop / height) - margin);
    const to = Math.min(this.items.length, Math.ceil((this.element.scrollTop + view) / height) + margin);
    this.body.style.height = `${this.items.length * height}px`;
    if (all) this.painted.clear();
    const next = new Map();
    for (let index = from; index < to; index++) next.set(index, this.painted.get(index) ?? this.row(index, height));
    if (all) this.body.replaceChildren(...next.values());
    else {
      for (const [index, row] of this.painted) if (!next.has(index)) row.remove();
      for (const [index, row] of next) if (!this.painted.has(index)) this.insert(row, index, next);
    }
    this.painted = next;
    this.markActive();
  }

  insert(row, index, next) {
    const after = next.get(index - 1);
    if (after?.parentNode === this.body) after.after(row);
    else this.body.prepend(row);
  }

  row(index, height) {
    const item = this.items[index];
    const row = h("div", { role: "row", class: "row", id: this.prefix + index, "aria-rowindex": index + 2, "data-index": index, ...this.attributes?.(item, index) },
      this.render(item, index).map((content, column) => h("div", { role: "gridcell", class: `cell ${this.columns[column].class}` }, content)));
    row.style.top = `${index * height}px`;
    return row;
  }

  markActive() {
    for (const [index, row] of this.painted) {
      row.classList.toggle("active", index === this.active);
      row.setAttribute("aria-selected", index === this.active);
    }
    if (this.painted.has(this.active)) this.element.setAttribute("aria-activedescendant", this.prefix + this.active);
    else this.element.removeAttribute("aria-activedescendant");
  }

  /** choose makes a row active and scrolls to it. */
  choose(index, middle) {
    if (this.items.length === 0) return;
    this.moved = true;
    this.active = Math.max(0, Math.min(index, this.items.length - 1));
    const height = this.rowHeight(), view = this.element.clientHeight - this.head.offsetHeight, top = this.active * height;
    if (middle) this.element.scrollTop = top - view / 2;
    else if (top < this.element.scrollTop) this.element.scrollTop = top;
    else if (top + height > this.element.scrollTop + view) this.element.scrollTop = top + height - view;
    this.paint();
    this.chosen?.(this.items[this.active]);
  }

  /** chosenKey returns the key of the row that the user selected, or null. */
  chosenKey() { return this.moved && this.items[this.active] ? this.keyOf(this.items[this.active]) : null; }

  chooseKey(key) {
    const at = this.items.findIndex((item) => this.keyOf(item) === key);
    if (at >= 0) this.choose(at, true);
    return at >= 0;
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.rowHeight()) - 2);
    const moves = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in moves) {
      const to = this.active + moves[event.key];
      this.choose(to === Infinity ? this.items.length - 1 : to === -Infinity ? 0 : to);
    } else if (event.key === "Enter" && this.items[this.active]) this.open?.(this.items[this.active]);
    else if (!this.items[this.active] || !this.keys?.(event.key, this.items[this.active], this.active)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  onClick(event) {
    const row = event.target.closest("[data-index]");
    if (!row || String(getSelection())) return;
    this.choose(Number(row.dataset.index));
    if (event.target.closest("a")) return; // the browser follows the link
    if (this.keys && event.target.closest(".twist")) this.keys(" ", this.items[this.active], this.active);
    else this.open?.(this.items[this.active], event);
  }
}
Virtual.count = 0;
