// Functions that all views use: elements, readable numbers, tables that can be sorted, addresses in the page.
"use strict";

const DATA = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";

// Element with attributes and children. Strings are inserted as text, never as markup.
function element(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

function shape(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

// Number with at most `digits` significant digits. Integers from 1000 on keep all their digits.
function numberText(value, digits = 4) {
  if (value === null || value === undefined) return "";
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString("en");
  if (size !== 0 && size < 1e-3) return value.toExponential(digits - 1);
  return value.toLocaleString("en", { maximumSignificantDigits: digits });
}

// Share in per cent, never rounded to 0 % or 100 %.
function shareText(part, whole) {
  if (!whole) return "";
  const share = (100 * part) / whole;
  if (share === 0 || share === 100) return `${share} %`;
  if (share > 0 && share < 0.1) return "< 0.1 %";
  if (share > 99.9 && share < 100) return "> 99.9 %";
  return `${share.toFixed(1)} %`;
}

function sum(values) {
  return values.reduce((total, value) => total + (value || 0), 0);
}

// Runs are found by name. A run without a result has only a row.
const PLACE = new Map(DATA.columns.map((column, place) => [column.key, place]));
const ROW = new Map(DATA.rows.map((row) => [row[PLACE.get("run")], row]));

function valueOf(run, key) {
  return PLACE.has(key) ? ROW.get(run)[PLACE.get(key)] : null;
}

function hasResult(run) {
  return valueOf(run, "energy_pj") !== null;
}

function columnWords(column) {
  return column.unit ? `${column.words} [${column.unit}]` : column.words;
}

function runLink(run) {
  return hasResult(run) ? element("a", { href: `#run=${encodeURIComponent(run)}` }, run) : run;
}

// Text of a cell: a number, a text, or the reason why there is no value.
function cellText(run, column) {
  const value = valueOf(run, column.key);
  if (column.key === "area_mm2" && value === null) return DATA.notes[run] || "";
  return column.number ? numberText(value) : value || "";
}

// Alignment of the text of a column.
function endOf(column) {
  return column.middle ? "middle" : column.number ? "number" : null;
}

// Table. Columns are {words, unit, number, value(row), cell(row)}. A head is a button that sorts by its column; empty cells
// come last in both directions. `open(row)` returns the element that a button in the first cell shows below the row.
class Table {
  constructor(caption, columns, rows, { open = null, order = null, chosen = null, changed = null } = {}) {
    Object.assign(this, { columns, rows, open, chosen, changed, order: order || { place: -1, down: false }, opened: new Set() });
    this.body = element("tbody");
    this.heads = columns.map((column, place) => this.head(column, place));
    const table = element("table", {}, element("thead", {}, element("tr", {}, this.heads)), this.body);
    this.node = element("div", { class: "wide", tabindex: "0", role: "region", "aria-label": caption }, table);
    this.draw();
  }

  head(column, place) {
    const arrow = element("span", { class: "arrow", "aria-hidden": "true" });
    const button = element("button", { type: "button", onclick: () => this.sort(place) }, column.words, arrow);
    const unit = column.unit ? element("small", {}, `[${column.unit}]`) : null;
    return element("th", { scope: "col", class: endOf(column) }, button, unit);
  }

  sort(place) {
    const same = this.order.place === place;
    // The first click sorts names in ascending and numbers in descending order, so that the largest energy is on top.
    this.order = { place, down: same ? !this.order.down : Boolean(this.columns[place].number) };
    this.draw();
    if (this.changed) this.changed(this.order);
  }

  sorted() {
    const { place, down } = this.order;
    if (place < 0) return this.rows;
    const column = this.columns[place], sign = down ? -1 : 1;
    const keyed = this.rows.map((row, number) => [column.value(row), number, row]);
    const isEmpty = (value) => value === null || value === undefined || value === "";
    keyed.sort(([a, i], [b, j]) => {
      if (isEmpty(a) || isEmpty(b)) return isEmpty(a) - isEmpty(b) || i - j;
      const ahead = column.number ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
      return sign * ahead || i - j;
    });
    return keyed.map((one) => one[2]);
  }

  show(rows) {
    this.rows = rows;
    this.draw();
  }

  draw() {
    this.heads.forEach((head, place) => {
      const is = place === this.order.place, down = this.order.down;
      if (is) head.setAttribute("aria-sort", down ? "descending" : "ascending"); else head.removeAttribute("aria-sort");
      head.querySelector(".arrow").textContent = is ? (down ? " ▼" : " ▲") : "";
    });
    this.body.replaceChildren(...this.sorted().flatMap((row) => this.lines(row)));
  }

  lines(row) {
    const cells = this.columns.map((column, place) => {
      const content = column.cell ? column.cell(row) : column.number ? numberText(column.value(row)) : column.value(row);
      const named = place === 0 ? { class: "name", scope: "row" } : { class: endOf(column) };
      return element(place === 0 ? "th" : "td", named, content === null || content === undefined ? "" : content);
    });
    const line = element("tr", { class: this.chosen && this.chosen(row) ? "chosen" : null }, cells);
    if (!this.open) return [line];
    const below = element("tr", { class: "open", hidden: true }, element("td", { colspan: this.columns.length }));
    const button = element("button", { type: "button", "aria-expanded": "false" }, "+");
    const toggle = (isOpen) => {
      if (isOpen && !below.firstChild.hasChildNodes()) below.firstChild.append(this.open(row));
      below.hidden = !isOpen;
      button.setAttribute("aria-expanded", String(isOpen));
      button.textContent = isOpen ? "−" : "+";
      if (isOpen) this.opened.add(row); else this.opened.delete(row);
    };
    button.setAttribute("aria-label", `show more of ${cells[0].textContent}`);
    button.addEventListener("click", () => toggle(below.hidden));
    cells[0].prepend(button, " ");
    if (this.opened.has(row)) toggle(true);
    return [line, below];
  }
}

// Plain table of texts. `numbers` has the places of the columns with numbers.
function plainTable(caption, heads, rows, numbers = []) {
  const ends = (place) => (numbers.includes(place) ? "number" : null);
  const head = element("tr", {}, heads.map((words, place) => element("th", { scope: "col", class: ends(place) }, words)));
  const body = rows.map((row) => element("tr", {}, row.map((cell, place) => element(place ? "td" : "th",
    { scope: place ? null : "row", class: ends(place) || (place ? null : "name") }, typeof cell === "number" ? numberText(cell) : cell || ""))));
  const table = element("table", {}, element("thead", {}, head), element("tbody", {}, body));
  return element("div", { class: "wide", tabindex: "0", role: "region", "aria-label": caption }, table);
}

function choice(words, options, chosen, changed) {
  const select = element("select", { onchange: () => changed(select.value) },
    options.map(([value, text]) => element("option", { value, selected: value === chosen }, text)));
  return element("label", {}, words, select);
}

function checkbox(words, isOn, changed) {
  const box = element("input", { type: "checkbox", onchange: () => changed(box.checked) });
  box.checked = isOn;
  return element("label", { class: "line" }, box, words);
}

function section(title, ...content) {
  return element("section", {}, element("h2", {}, title), ...content);
}
