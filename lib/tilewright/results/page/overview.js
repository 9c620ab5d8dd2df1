// Picture above the table of runs: energy, latency and area of runs that can be compared, with what limits each run.
// Bars are drawn by share of their place and texts are texts of the page, so the picture fits a telephone and dark mode.
"use strict";

const MOST_DRAWN = 12, MOST_OPEN = 3;

// Quantities of a group: energy; time if it is known of all runs, else cycles; area if it is known of a run.
function overviewColumns(runs) {
  const known = (key) => runs.filter((run) => valueOf(run, key) !== null).length;
  const hasTime = known("latency_s") === runs.length;
  return ["energy_pj", hasTime ? "latency_s" : "latency_cycles", ...(known("area_mm2") ? ["area_mm2"] : [])].map((key) => DATA.columns[PLACE.get(key)]);
}

// Runs with the least value of a quantity.
function overviewBest(runs, column) {
  const least = Math.min(...runs.map((run) => valueOf(run, column.key)).filter((value) => value !== null));
  return runs.filter((run) => valueOf(run, column.key) === least);
}

// Groups with the runs among `names` that have a result, by energy times latency. MOST_DRAWN runs of each group are
// drawn, and the first with the least value of each quantity.
function overviewGroups(names) {
  const groups = DATA.groups.map((group) => {
    const runs = group.runs.filter((run) => names.has(run) && hasResult(run));
    const columns = runs.length ? overviewColumns(runs) : [];
    const product = (run) => valueOf(run, columns[0].key) * valueOf(run, columns[1].key);
    runs.sort((a, b) => product(a) - product(b));
    const best = columns.map((column) => overviewBest(runs, column)[0]);
    const drawn = runs.filter((run, place) => place < MOST_DRAWN || best.includes(run));
    return { name: group.name, lines: group.lines, columns, all: runs, runs: drawn, count: runs.length };
  });
  return groups.filter((group) => group.count);
}

// Sentences on a group: the run with the least value of each quantity, and what is not drawn. Equal runs are all named.
function overviewWords(group) {
  const words = group.columns.map((column) => {
    const known = group.all.filter((run) => valueOf(run, column.key) !== null), best = overviewBest(known, column);
    if (known.length < 2) return null;
    const of = known.length < group.count ? ` of the ${known.length} runs with a known ${column.words}` : "";
    if (best.length === known.length) return `equal ${column.words}${of}`;
    const named = best.length > 3 ? `${best.length} runs` : best.join(", ");
    return `least ${column.words}${of}: ${named} (${numberText(valueOf(best[0], column.key))} ${column.unit})`;
  }).filter(Boolean);
  const drawn = group.count > group.runs.length ? `drawn: ${group.runs.length} of ${group.count} runs, those with the least energy times latency and the first with the least of each quantity` : "";
  const area = group.columns.length < 3 ? "area: not known of any run" : "";
  return [...words, area, drawn].filter(Boolean).join("; ");
}

// Bar of a value with its text above; the longest bar of the column fills its place.
function overviewBar(run, column, most, isLeast) {
  const value = valueOf(run, column.key), text = value === null ? cellText(run, column) || "not known" : `${numberText(value)} ${column.unit}`;
  const told = `${run}: ${column.words} ${text}${isLeast ? ", the least" : ""}`;
  const share = value === null || !most ? 0 : (100 * value) / most;
  const bar = shape("svg", { class: "stack", role: "img", "aria-label": told }, shape("title", {}, told),
    shape("rect", { width: `${Math.max(share, value ? 0.6 : 0)}%`, height: 14, fill: isLeast ? "var(--front)" : "var(--bar)" }));
  return element("div", { class: "value" }, element("span", {}, isLeast ? `${text}, least` : text), bar);
}

function overviewGroup(group) {
  const values = group.columns.map((column) => group.runs.map((run) => valueOf(run, column.key)).filter((value) => value !== null));
  const most = values.map((all) => Math.max(...all, 0)), least = values.map((all) => (new Set(all).size > 1 ? Math.min(...all) : null));
  const rows = group.runs.map((run) => element("div", { class: "run" },
    element("div", { class: "name" }, run, element("small", {}, valueOf(run, "limited_by") ? `limited by ${valueOf(run, "limited_by")}` : "limit not known")),
    group.columns.map((column, place) => overviewBar(run, column, most[place], least[place] !== null && valueOf(run, column.key) === least[place]))));
  const head = element("div", { class: "run head", "aria-hidden": "true" }, element("div", { class: "name" }), group.columns.map((column) => element("div", {}, columnWords(column))));
  const words = overviewWords(group);
  return element("div", { class: "overview", role: "group", "aria-label": `${group.name}: ${words}` }, head, rows,
    element("p", { class: "faint" }, `${words}${words ? ". " : ""}Shorter is better.`), ...group.lines.map((line) => element("p", { class: "faint" }, line)), frontsOfGroup(group));
}

// Picture of the runs among `names`: the first groups are open, the others are opened by a click.
function overview(names) {
  return overviewGroups(names).map((group, place) => {
    const count = `${group.count} run${group.count === 1 ? "" : "s"}`;
    return element("details", { open: place < MOST_OPEN }, element("summary", {}, `${group.name} (${count})`), overviewGroup(group));
  });
}
