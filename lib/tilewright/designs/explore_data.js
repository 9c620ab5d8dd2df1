// Data for the page of a space of designs: functions that read the data of page.py. They draw nothing.
"use strict";

const ON_FRONT = 0, DOMINATED = 1, UNMET = 2;
const MOST_LEVELS = 16, LOG_FROM = 10, MOST_TITLE = 17;

// Texts from the user's files, made safe for labels and hover texts, in which plotly reads some HTML.
function plain(text) {
  return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

const WHOLE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const FOUR_DIGITS = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 4 });

function numberText(value) {
  if (value === null || value === undefined) return "not given";
  return (Math.abs(value) >= 1e4 ? WHOLE : FOUR_DIGITS).format(value);
}

// Title of a column, shortened to its end if it is too long, because the end of a dotted path says most.
function shortTitle(column) {
  const title = titleOf(column);
  return title.length <= MOST_TITLE ? title : `…${title.slice(1 - MOST_TITLE)}`;
}

function titleOf(column) { return column.unit ? `${column.words} [${column.unit}]` : column.words; }

// Text of a cell: a level in a column of texts, all digits for a value of an axis or law, four digits for a measure.
function cellText(column, value) {
  if (value === null || value === undefined) return "not given";
  if (column.levels) return column.levels[value];
  return column.kind === "value" ? String(value) : numberText(value);
}

function distinct(values) {
  return [...new Set(values.filter((value) => value !== null))].sort((a, b) => a - b);
}

// True if numbers are so far apart that a logarithmic axis is better.
function isFar(values) {
  let least = Infinity, most = -Infinity;
  for (const value of values) if (value !== null) { if (value < least) least = value; if (value > most) most = value; }
  return least > 0 && most / least >= LOG_FROM;
}

// Ticks between two numbers: 1, 2 and 5 times powers of ten, or only powers of ten if there would be more than nine.
function logTicks(least, most) {
  const found = [];
  for (let power = Math.floor(Math.log10(least)); power <= Math.ceil(Math.log10(most)); power++) {
    for (const digit of [1, 2, 5]) {
      const tick = Number(`${digit}e${power}`);
      if (tick >= least * 0.999 && tick <= most * 1.001) found.push(tick);
    }
  }
  return found.length <= 9 ? found : found.filter((tick) => Math.abs(Math.log10(tick) % 1) < 1e-9);
}

// Blank text of tick i. Each one has another length, because plotly merges ticks with equal texts.
function blank(i) { return " ".repeat(i + 1); }

// One axis of parallel coordinates. Few values are equally spaced; numbers far apart are on a logarithmic scale.
function dimensionOf(column, values) {
  const levels = distinct(values), label = plain(shortTitle(column)), key = column.key;
  const isFew = levels.length <= MOST_LEVELS && column.kind === "value";
  if (column.levels || isFew) {
    const place = new Map(levels.map((level, i) => [level, i]));
    const step = Math.ceil(levels.length / MOST_LEVELS);
    return {
      key, label, values: values.map((value) => place.get(value)), tickvals: levels.map((_, i) => i),
      ticktext: levels.map((level, i) => (i % step ? blank(i) : cellText(column, level))), range: [-0.2, levels.length - 0.8],
    };
  }
  const least = levels[0], most = levels[levels.length - 1];
  if (!isFar(levels)) return { key, label, values, range: least === most ? [least * 0.9, most * 1.1 || 1] : [least, most] };
  // Many ticks without text, so that a filter can begin and end nearly anywhere: filters snap to ticks.
  const low = Math.log10(least), high = Math.log10(most), ticks = new Map();
  for (let i = 0; i <= 100; i++) ticks.set(low + (high - low) * i / 100, blank(i));
  for (const tick of logTicks(least, most)) ticks.set(Math.log10(tick), numberText(tick));
  const places = [...ticks.keys()].sort((a, b) => a - b);
  return {
    key, label, values: values.map((value) => Math.log10(value)), range: [low, high],
    tickvals: places, ticktext: places.map((place) => ticks.get(place)),
  };
}

// One truth value per row: true if the row is inside all filters. A filter is a range or a list of ranges.
function inside(dimensions, count) {
  const kept = new Array(count).fill(true);
  for (const { values, constraintrange } of dimensions) {
    if (!constraintrange || !constraintrange.length) continue;
    const ranges = Array.isArray(constraintrange[0]) ? constraintrange : [constraintrange];
    for (let row = 0; row < count; row++) {
      kept[row] = kept[row] && ranges.some(([low, high]) => values[row] >= low && values[row] <= high);
    }
  }
  return kept;
}

// Rows on the front of the measures x and y alone, in ascending order of x.
function lowerLeft(rows, x, y) {
  const order = rows.filter((row) => x[row] !== null && y[row] !== null).sort((a, b) => x[a] - x[b] || y[a] - y[b]);
  let least = Infinity;
  return order.filter((row) => y[row] < least && ((least = y[row]), true));
}

class View {
  constructor(columns, data) {
    this.columns = columns;
    this.data = data;
    this.count = data.names.length;
    this.rows = [...Array(this.count).keys()];
    this.kinds = {};
    this.hovers = new Map();
  }

  column(key) { return this.columns.find((column) => column.key === key); }

  values(key) { return this.data.columns[key]; }

  text(key, row) { return cellText(this.column(key), this.values(key)[row]); }

  // Columns of a kind that have a number in at least one row.
  of(kind) {
    this.kinds[kind] ??= this.columns.filter((column) => column.kind === kind && this.values(column.key).some((value) => value !== null));
    return this.kinds[kind];
  }

  // Parts of the energy or of the latency of a row with their shares, the largest part first.
  parts(kind, row) {
    const found = this.of(kind).map((column) => ({ words: column.words, unit: column.unit, value: this.values(column.key)[row] || 0 }));
    const total = found.reduce((sum, part) => sum + part.value, 0);
    for (const part of found) part.share = total > 0 ? part.value / total : 0;
    return found.sort((a, b) => b.value - a.value);
  }

  stateText(row) {
    const state = this.data.state[row];
    if (state === ON_FRONT) return "on the Pareto front";
    if (state === UNMET) return `does not meet ${this.data.unmet[row]}`;
    const other = this.data.dominated_by[row];
    return other < 0 ? "dominated" : `dominated by ${this.data.names[other]}`;
  }

  hover(row) {
    if (!this.hovers.has(row)) this.hovers.set(row, this.hoverText(row));
    return this.hovers.get(row);
  }

  hoverText(row) {
    const lines = [`<b>${plain(this.data.names[row])}</b>, ${plain(this.stateText(row))}`];
    const values = this.of("value").map((column) => `${plain(column.words)} ${plain(this.text(column.key, row))}`);
    for (let i = 0; i < values.length; i += 4) lines.push(values.slice(i, i + 4).join(", "));
    for (const column of [...this.of("measure"), ...this.of("use")]) lines.push(`${column.words}: ${this.text(column.key, row)} ${column.unit}`);
    for (const kind of ["energy", "latency"]) {
      const largest = this.parts(kind, row)[0];
      if (largest && largest.value > 0) lines.push(`most ${kind}: ${plain(largest.words)}, ${(100 * largest.share).toFixed(0)} %`);
    }
    return lines.join("<br>");
  }
}

if (typeof module !== "undefined") module.exports = { View, dimensionOf, inside, lowerLeft, logTicks, plain, numberText };
