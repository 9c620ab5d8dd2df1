// Views: the table of all runs, the Pareto front, and two runs side by side; and the choice of the view that is shown.
"use strict";

const chosen = { text: "", filters: {}, order: null, pareto: {}, compare: {} };

function runsView() {
  const filters = ["workload", "hardware", "flow", "objective", "model", "state"].map((key) => DATA.columns[PLACE.get(key)])
    .filter((column) => column && new Set(DATA.rows.map((row) => row[PLACE.get(column.key)])).size > 1);
  const told = element("p", { class: "faint", role: "status", id: "count" });
  const columns = DATA.columns.map((column, place) => ({
    words: column.words, unit: column.unit, number: column.number, value: (row) => row[place],
    cell: (row) => (column.key === "run" ? runLink(row[place]) : cellText(row[PLACE.get("run")], column)),
  }));
  const kept = () => DATA.rows.filter((row) => {
    const text = row.map((value) => value ?? "").join(" ").toLowerCase();
    return chosen.text.toLowerCase().split(/\s+/).every((word) => text.includes(word))
      && Object.entries(chosen.filters).every(([key, value]) => !value || String(row[PLACE.get(key)] ?? "") === value);
  });
  const table = new Table("runs", columns, DATA.rows, { order: chosen.order, changed: (order) => { chosen.order = order; } });
  const picture = element("section", { id: "overview", "aria-label": "energy, latency and area of the runs; the table has the same numbers" });
  const show = () => {
    const rows = kept();
    table.show(rows);
    picture.replaceChildren(...overview(new Set(rows.map((row) => row[PLACE.get("run")]))));
    told.textContent = rows.length === DATA.rows.length ? `${rows.length} runs` : `${rows.length} of ${DATA.rows.length} runs`;
  };
  table.node.classList.add("compact");
  const search = element("input", { type: "search", id: "filter", oninput: () => { chosen.text = search.value; show(); } });
  search.value = chosen.text;
  const picks = filters.map((column) => {
    const values = [...new Set(DATA.rows.map((row) => row[PLACE.get(column.key)]).filter(Boolean))].sort();
    return choice(column.words, [["", "all"], ...values.map((value) => [value, value])], chosen.filters[column.key] || "", (value) => {
      chosen.filters[column.key] = value;
      show();
    });
  });
  show();
  return [element("h1", {}, "Runs"), picture, element("div", { class: "controls" }, element("label", {}, "filter", search), picks), told, table.node,
    ...DATA.unlike.map((line) => element("p", { class: "faint" }, line)),
    ...DATA.groups.flatMap((group) => group.turns.map((line) => element("p", { class: "faint" }, `${group.name}: ${line}`)))];
}

// Runs that are not dominated: no other run of the list is at least as good in both quantities and better in one.
function isOnFront(one, all) {
  return !all.some((other) => other.x <= one.x && other.y <= one.y && (other.x < one.x || other.y < one.y));
}

function paretoView() {
  const costs = DATA.columns.filter((column) => column.cost), state = chosen.pareto;
  if (!DATA.groups.length) return [element("h1", {}, "Pareto front"), element("p", {}, "No run has a result.")];
  const group = DATA.groups.find((one) => one.name === state.group) || DATA.groups.find((one) => one.runs.length > 1) || DATA.groups[0];
  const across = costs.find((column) => column.key === (state.x || "latency_cycles")), up = costs.find((column) => column.key === (state.y || "energy_pj"));
  const known = group.runs.filter((run) => valueOf(run, across.key) !== null && valueOf(run, up.key) !== null);
  const missing = group.runs.filter((run) => !known.includes(run));
  const network = valueOf(group.runs[0], "workload");
  const points = known.map((run) => ({ run, x: valueOf(run, across.key), y: valueOf(run, up.key), name: run.startsWith(`${network}-`) ? run.slice(network.length + 1) : run, href: `#run=${encodeURIComponent(run)}` }));
  for (const point of points) {
    point.strong = isOnFront(point, points);
    point.shape = point.strong ? "diamond" : "circle";
    point.told = `${point.run}: ${numberText(point.x)} ${across.unit}, ${numberText(point.y)} ${up.unit}, ${point.strong ? "on the front" : "not on the front"}`;
  }
  const canLog = points.every((point) => point.x > 0 && point.y > 0), isLog = state.log !== false && canLog;
  const pick = (name) => (value) => { state[name] = value; show(false, name); };
  const options = costs.map((column) => [column.key, columnWords(column)]);
  const controls = element("div", { class: "controls" },
    choice("runs of", DATA.groups.map((one) => [one.name, `${one.name} (${one.runs.length})`]), group.name, pick("group")),
    choice("across", options, across.key, pick("x")), choice("up", options, up.key, pick("y")), checkbox("logarithmic", isLog, pick("log")));
  // Names by which the selection lists are found after the view is drawn again.
  [...controls.querySelectorAll("select, input")].forEach((one, place) => { one.dataset.pick = ["group", "x", "y", "log"][place]; });
  const parts = [];
  if (points.length) {
    const front = points.filter((point) => point.strong).sort((a, b) => a.x - b.x || b.y - a.y);
    const steps = front.flatMap((point, place) => (place ? [[point.x, front[place - 1].y], [point.x, point.y]] : [[point.x, point.y]]));
    parts.push(new Scatter(`${columnWords(up)} over ${columnWords(across)}`, points, { words: columnWords(across), log: isLog }, { words: columnWords(up), log: isLog }, { lines: steps.length > 1 ? [steps] : [] }).node);
  } else parts.push(element("p", {}, "No run has both numbers."));
  const columns = [{ words: "run", value: (one) => one.run, cell: (one) => runLink(one.run) }, { words: across.words, unit: across.unit, number: true, value: (one) => one.x },
    { words: up.words, unit: up.unit, number: true, value: (one) => one.y }, { words: "on the front", value: (one) => (one.strong ? "yes" : "no") }];
  return [element("h1", {}, "Pareto front"), element("p", { class: "faint" }, "Runs of one network that can be compared. Diamonds are on the front: no other run is at least as good in both quantities and better in one. Less is better on both axes. The axes begin and end with the data."),
    controls, ...parts, missing.length ? element("p", {}, `Not drawn, because a number is missing: ${missing.join(", ")}.`) : null,
    ...[...group.lines, ...group.turns].map((line) => element("p", { class: "faint" }, line)), new Table("runs of the figure", columns, points).node];
}

function compareView(given) {
  const runs = [...ROW.keys()].filter((run) => hasResult(run)), state = chosen.compare;
  if (runs.length < 2) return [element("h1", {}, "Two runs"), element("p", {}, "There are no two runs to compare.")];
  if (given.length) [state.a, state.b] = [given[0], given[1] || state.b];
  if (!runs.includes(state.a)) state.a = runs[0];
  if (!runs.includes(state.b) || state.b === state.a) {
    state.b = runs.find((run) => run !== state.a && valueOf(run, "workload") === valueOf(state.a, "workload")) || runs.find((run) => run !== state.a);
  }
  const { a, b } = state, options = runs.map((run) => [run, run]);
  const pick = (name) => (value) => {
    const pair = { a, b, [name]: value };
    if (pair.a === pair.b) pair[name === "a" ? "b" : "a"] = name === "a" ? a : b;
    location.hash = `#compare=${encodeURIComponent(pair.a)}&with=${encodeURIComponent(pair.b)}`;
  };
  const controls = element("div", { class: "controls" }, choice("A", options, a, pick("a")), choice("B", options, b, pick("b")));
  [...controls.querySelectorAll("select")].forEach((one, place) => { one.dataset.pick = "ab"[place]; });
  const network = valueOf(a, "workload") === valueOf(b, "workload") ? null : element("p", {}, "The runs are of different networks.");
  const totals = DATA.columns.filter((column) => column.key !== "run" && (cellText(a, column) || cellText(b, column)))
    .map((column) => [columnWords(column), cellText(a, column), cellText(b, column), column.number ? ratioText(valueOf(a, column.key), valueOf(b, column.key)) : cellText(a, column) === cellText(b, column) ? "" : "differs"]);
  const heads = ["", "A", "B", "B − A", "B / A"], one = DATA.details[a], other = DATA.details[b], parts = [];
  if (one && other) {
    const energies = (detail) => detail.energy.map(([place, operand, value]) => [operand ? `${place}, ${operand}` : place, value]);
    parts.push(differences("Energy by memory and operand [µJ]", heads, energies(one), energies(other)));
    if (one.cycles.length && other.cycles.length) parts.push(differences("Cycles by cause [cycles]", heads, one.cycles, other.cycles));
    if (one.flow === "single" && other.flow === "single") {
      const layersOf = (detail, key) => detail.layers.map(([name, record]) => [name, detail.records[record][key]]);
      parts.push(differences("Latency of layers [cycles]", heads, layersOf(one, "latency"), layersOf(other, "latency")),
        differences("Energy of layers [µJ]", heads, layersOf(one, "energy"), layersOf(other, "energy")));
    } else if (one.flow === other.flow) {
      const layersOf = (detail) => detail.layers.map((layer) => [layer[0], layer[7]]);
      parts.push(differences("Energy of layers on cores [µJ]", heads, layersOf(one), layersOf(other)));
    }
  }
  const pairs = DATA.groups.filter((group) => group.runs.length === 2 && group.runs.includes(a) && group.runs.includes(b));
  const turns = pairs.flatMap((group) => group.turns.map((line) => element("p", { class: "faint" }, line)));
  return [element("h1", {}, "Two runs"), controls, network, element("p", {}, "A is ", runLink(a), ", B is ", runLink(b), "."), ...turns, plainTable("totals", ["", "A", "B", "B / A"], totals, [1, 2, 3]), ...parts];
}

function ratioText(a, b) {
  return a && b !== null ? `${numberText(b / a, 3)} ×` : "";
}

// Terms of two runs by name, the largest difference first. A bar is left of the middle if B has less.
function differences(title, heads, ones, others) {
  const added = (pairs) => {
    const found = new Map();
    for (const [name, value] of pairs) found.set(name, (found.get(name) || 0) + value);
    return found;
  };
  const a = added(ones), b = added(others);
  const rows = [...new Set([...a.keys(), ...b.keys()])].map((name) => ({ name, a: a.get(name) ?? null, b: b.get(name) ?? null, d: (b.get(name) || 0) - (a.get(name) || 0) }))
    .sort((x, y) => Math.abs(y.d) - Math.abs(x.d));
  const most = Math.max(...rows.map((row) => Math.abs(row.d))) || 1;
  const bar = (row) => {
    const wide = (50 * Math.abs(row.d)) / most, told = row.d ? `B has ${numberText(Math.abs(row.d))} ${row.d < 0 ? "less" : "more"}` : "equal";
    return shape("svg", { class: "stack", role: "img", "aria-label": told }, shape("title", {}, told),
      shape("rect", { x: `${row.d < 0 ? 50 - wide : 50}%`, y: 2, width: `${wide}%`, height: 14, fill: fillOf(row.d < 0 ? 0 : 1) }),
      shape("rect", { x: "50%", width: 1, height: 18, fill: "var(--mark)" }));
  };
  const columns = [{ words: "", value: (row) => row.name }, { words: "A", number: true, value: (row) => row.a }, { words: "B", number: true, value: (row) => row.b },
    { words: "B − A", number: true, value: (row) => row.d, cell: (row) => (row.d > 0 ? "+" : "") + numberText(row.d) },
    { words: "less | more", number: true, middle: true, value: (row) => row.d, cell: bar }, { words: "B / A", number: true, value: (row) => (row.a && row.b !== null ? row.b / row.a : null), cell: (row) => ratioText(row.a, row.b) }];
  columns[0].words = "what";
  const table = new Table(title, columns, rows);
  if (rows.length > 30) table.node.classList.add("tall");
  return section(title, table.node);
}

// View that the part of the address after # selects.
function show(isNew = true, pick = "") {
  const place = location.hash.slice(1), at = new URLSearchParams(place);
  const main = document.getElementById("main");
  let name = "runs", content;
  if (at.has("run") && ROW.has(at.get("run")) && hasResult(at.get("run"))) [name, content] = ["run", runView(at.get("run"))];
  else if (place === "pareto") [name, content] = ["pareto", paretoView()];
  else if (at.has("compare")) [name, content] = ["compare", compareView([at.get("compare"), at.get("with")].filter(Boolean))];
  else if (place === "main" && main.childElementCount) return main.focus();
  else content = DATA.rows.length === 1 && !place && DATA.details[DATA.rows[0][0]] ? runView(DATA.rows[0][PLACE.get("run")]) : runsView();
  const held = pick || (document.activeElement && document.activeElement.dataset.pick);
  main.replaceChildren(...content.flat().filter(Boolean));
  for (const link of document.querySelectorAll("nav a")) {
    if (link.getAttribute("href") === `#${name}`) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  const same = held && main.querySelector(`[data-pick="${held}"]`);
  if (same) same.focus();
  else if (isNew) {
    window.scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
  return undefined;
}

window.addEventListener("hashchange", () => show());
show(false);
