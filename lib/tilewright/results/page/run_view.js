// One run: totals, causes of cycles and energy, roofline, and layers down to loop nests and memory levels. For a run on
// several cores also the use of the cores, the baselines, and the schedule.
"use strict";

function facts(run) {
  const shown = DATA.columns.filter((column) => column.key !== "run" && cellText(run, column) !== "");
  const rows = shown.map((column) => element("div", {}, element("dt", {}, columnWords(column)), element("dd", {}, cellText(run, column))));
  return element("dl", { class: "facts" }, rows);
}

function runView(run) {
  const detail = DATA.details[run];
  const head = [element("h1", {}, run), facts(run)];
  if (!detail) return [...head, element("p", {}, "This page has too many runs to show each of them in full. tilewright page FOLDER -o FILE makes a page of this run alone.")];
  const notes = element("div", { class: "notes" }, detail.notes.map((line) => element("p", { class: "faint" }, line)));
  const parts = detail.flow === "single" ? [limits(run, detail), frontSection(run, detail), whereItGoes(run, detail), roofline(detail), layers(detail)]
    : [whatLimitsCores(run, detail), coreCycles(run, detail), whereItGoes(run, detail), compared(run, detail), cores(detail), layersOfCores(detail), schedule(detail)];
  return [...head, notes, element("p", {}, element("a", { href: `#compare=${encodeURIComponent(run)}` }, "compare with another run")), ...parts];
}

function limits(run, detail) {
  const limit = detail.limit, latency = valueOf(run, "latency_cycles");
  if (limit.unknown) return section("What limits it", element("p", {}, `Not known: ${limit.unknown}.`));
  if (!limit.text) return section("What limits it", element("p", {}, "Not known here. tilewright explain computes it from the hardware and the network of the run."));
  const lines = [...limit.lines, limit.array].filter(Boolean).map((line) => element("p", {}, line));
  const rows = limit.ports.map(([name, gain, count]) => [name, gain, shareText(gain, latency), `${count} of ${detail.layers.length}`]);
  return section("What limits it", ...lines,
    rows.length ? plainTable("ports", ["port", "saved with twice the width [cycles]", "share of the latency", "limits layers"], rows, [1, 2, 3]) : null);
}

function whatLimitsCores(run, detail) {
  if (!detail.limits) return section("What limits it", element("p", {}, "Not known, because schedules of this model do not have causes of waiting."));
  const latency = valueOf(run, "latency_cycles"), parts = detail.limits.parts;
  return section("What limits it", detail.limits.lines.map((line) => element("p", {}, `${line}.`)),
    parts.length ? element("p", { class: "faint" }, "Each row is a new simulation of the schedule with this part doubled and with the same allocation and cost tables.") : null,
    parts.length ? plainTable("parts that limit", ["doubled part", "would save [cycles]", "share of the latency"], parts.map(([name, gain]) => [name, gain, shareText(gain, latency)]), [1, 2]) : null);
}

// Cycles of each core by cause, and the causes of waiting.
function coreCycles(run, detail) {
  if (!detail.work) return null;
  const { causes, cores } = detail.work, latency = valueOf(run, "latency_cycles"), place = element("div");
  const rows = cores.map(([core, cycles]) => element("tr", {}, element("td", {}, core), element("td", { class: "bar" }, stack(cycles, latency, causes, "cycles")),
    element("td", { class: "number" }, `${shareText(latency - sum(cycles.filter((_, i) => !detail.work.busy[i])), latency)} computing`)));
  const bars = element("table", { class: "bars", id: "core-cycles" },
    element("caption", { class: "faint", style: "text-align:left" }, `what each core does with the ${numberText(latency)} cycles`), element("tbody", {}, rows));
  const table = element("details", {}, element("summary", {}, "the same as a table [cycles]"),
    plainTable("cycles of cores by cause", ["core", ...causes, "all"], cores.map(([core, cycles]) => [core, ...cycles, sum(cycles)]), [...causes.map((_, i) => i + 1), causes.length + 1]));
  place.append(bars, legend(causes), table);
  const total = sum(detail.waits.map((one) => one[1]));
  const waits = detail.waits.length ? element("details", {}, element("summary", {}, "what cores wait for, all of them together"),
    plainTable("what cores wait for", ["cause", "cycles", "share of all waits"], detail.waits.map(([words, cycles]) => [words, cycles, shareText(cycles, total)]), [1, 2])) : null;
  return section("What the cores do", place, waits);
}

function whereItGoes(run, detail) {
  const latency = valueOf(run, "latency_cycles"), energy = valueOf(run, "energy_pj"), parts = [];
  if (detail.cycles.length) parts.push(barTable("cycles by cause", "cycles", detail.cycles.map(([name, value]) => [name, value, [[termOf(detail, name), value]]]), latency));
  const operands = [...new Set(detail.energy.map((one) => one[1]).filter(Boolean))].sort();
  const bars = new Map();
  for (const [place, operand, value] of detail.energy) {
    if (!bars.has(place)) bars.set(place, []);
    bars.get(place).push([operand ? operands.indexOf(operand) + 1 : 0, value]);
  }
  const rows = [...bars].map(([name, values]) => [name, sum(values.map((one) => one[1])), values]).sort((a, b) => b[1] - a[1]);
  const names = [detail.flow === "single" ? "no operand" : "in cores", ...operands];
  parts.push(element("div", {}, barTable(detail.flow === "single" ? "energy by memory and operand" : "energy by memory and cause", "µJ", rows, energy), legend(names, names.map((_, place) => place > 0 || rows.some((row) => row[2].some((one) => one[0] === 0)))), crossTable(rows, names)));
  return section("Where cycles and energy go", element("div", { class: "split" }, parts));
}

// Place of the term of a cause. The cause of a stall also names the port for which the array waits.
function termOf(detail, cause) {
  return Math.max(0, (detail.terms || []).findIndex((term) => cause === term || cause.startsWith(`${term}, `)));
}

function crossTable(rows, names) {
  const used = names.map((_, place) => place).filter((place) => rows.some((row) => row[2].some((one) => one[0] === place)));
  const lines = rows.map(([name, value, parts]) => [name, ...used.map((place) => {
    const found = parts.filter((one) => one[0] === place);
    return found.length ? sum(found.map((one) => one[1])) : "";
  }), value]);
  return element("details", {}, element("summary", {}, "the same as a table [µJ]"),
    plainTable("energy by memory and operand", ["", ...used.map((place) => names[place]), "all"], lines, [...used.map((_, i) => i + 1), used.length + 1]));
}

function roofline(detail) {
  const roofs = detail.roofline;
  if (!roofs || !roofs.ports.length) return null;
  const place = element("div"), table = element("div");
  const latencies = detail.layers.map(([, record]) => detail.records[record].latency), longest = Math.max(...latencies);
  const draw = (name) => {
    const port = roofs.ports.find((one) => one.name === name), peak = roofs.peak, ridge = peak / port.bytes;
    const ordered = [...port.points].sort((a, b) => latencies[b[0]] - latencies[a[0]]);
    const points = ordered.map(([layer, x, y]) => ({
      x, y, name: detail.layers[layer][0], size: 3.5 + 6 * Math.sqrt(latencies[layer] / longest),
      told: `${detail.layers[layer][0]}: ${numberText(x)} MACs a byte, ${numberText(y)} MACs a cycle, ${numberText(latencies[layer])} cycles`,
    }));
    const low = Math.min(ridge, ...points.map((one) => one.x)) / 1.5, high = Math.max(ridge, ...points.map((one) => one.x)) * 1.5;
    const roof = [[low, low * port.bytes], [ridge, peak], [high, peak]];
    const chart = new Scatter(`layers below the roof of ${name}`, points, { words: "MACs per byte moved over the port", log: true }, { words: "MACs a cycle", log: true },
      { lines: [roof], extra: [[low, Math.min(...points.map((one) => one.y))], [high, peak]] });
    place.replaceChildren(chart.node);
    table.replaceChildren(plainTable("points of the roofline", ["layer", "MACs a byte", "MACs a cycle", "of what the roof allows"],
      ordered.map(([layer, x, y]) => [detail.layers[layer][0], x, y, shareText(y, Math.min(peak, x * port.bytes))]), [1, 2, 3]));
  };
  const pick = choice("port", roofs.ports.map((one) => [one.name, `${one.name}, ${numberText(one.bytes)} B a cycle`]), roofs.ports[0].name, draw);
  draw(roofs.ports[0].name);
  return section("Roofline", element("div", { class: "controls" }, pick),
    element("p", { class: "faint" }, `The dashed line is the roof: the slope is the width of the port, the flat part the array, ${numberText(roofs.peak)} MACs a cycle. Larger points are layers that take longer. Each MAC counts once (in TOP/s, it counts as two operations); for layers without MACs, other operations count.`),
    place, element("details", {}, element("summary", {}, "the points as a table"), table));
}

function layers(detail) {
  const record = (layer) => detail.records[layer[1]];
  const most = { cycles: Math.max(...detail.records.map((one) => one.latency)), energy: Math.max(...detail.records.map((one) => one.energy)) };
  const columns = [
    { words: "layer", value: (layer) => layer[0] },
    { words: "operator", value: (layer) => record(layer).type },
    { words: "latency", unit: "cycles", number: true, value: (layer) => record(layer).latency },
    { words: "cycles by cause", value: (layer) => record(layer).latency, number: true, middle: true, cell: (layer) => stack(record(layer).cycles, most.cycles, detail.terms, "cycles") },
    { words: "energy", unit: "µJ", number: true, value: (layer) => record(layer).energy },
    { words: "energy by memory", value: (layer) => record(layer).energy, number: true, middle: true, cell: (layer) => stack(record(layer).parts, most.energy, detail.places, "µJ") },
    { words: "array use", unit: "%", number: true, value: (layer) => record(layer).use },
    { words: "limited by", value: (layer) => record(layer).limit },
    { words: "would save", unit: "cycles", number: true, value: (layer) => record(layer).gain || null },
  ];
  const table = new Table("layers", columns, detail.layers, { open: (layer) => layerView(detail, layer) });
  table.node.classList.add("tall");
  const seen = (key) => (_, place) => detail.records.some((one) => one[key][place] > 0);
  return section("Layers", element("p", { class: "faint" }, "In the order in which they run. + shows the loop nest, the memory levels and every number of a layer."),
    element("h3", {}, "cycles by cause"), legend(detail.terms, detail.terms.map(seen("cycles"))),
    element("h3", {}, "energy by memory"), legend(detail.places, detail.places.map(seen("parts"))), table.node);
}

function layerView(detail, layer) {
  const one = detail.records[layer[1]], equal = detail.layers.filter((other) => other[1] === layer[1] && other[0] !== layer[0]).map((other) => other[0]);
  const [energy, latency] = one.corrected;
  const lines = [`${one.work}; unrolled: ${one.unrolling || "nothing"}.`, equal.length ? `The same problem: ${equal.join(", ")}.` : "",
    one.waits ? `The array waits for ${one.waits}.` : "",
    energy === null ? "The mapping does not fit under the corrected model." : `Under the corrected model: ${numberText(energy)} µJ, ${numberText(latency)} cycles.`];
  const rows = one.levels.map(([operand, memory, bits, loops, filled, own, ...energies]) => [operand, memory, sizeText(bits), loops || "none", `${numberText(filled, 3)} %`, `${numberText(own, 3)} %`, ...energies]);
  const directions = { tl: "read for the lower level", fl: "written by the lower level", th: "read for the higher level", fh: "written by the higher level" };
  return element("div", {}, lines.filter(Boolean).map((line) => element("p", {}, line)),
    element("h3", {}, "Loop nest"), element("pre", { tabindex: "0", "aria-label": `loop nest of ${layer[0]}` }, one.nest),
    element("h3", {}, "Memory levels"),
    plainTable(`memory levels of ${layer[0]}`, ["operand", "memory", "size", "loops, innermost first", "filled", "by the operand", ...detail.directions.map((name) => `${directions[name] || name} [µJ]`)],
      rows, [2, 4, 5, 6, 7, 8, 9]),
    element("div", { class: "split" },
      barTable("cycles", "cycles", detail.terms.map((name, place) => [name, one.cycles[place], [[place, one.cycles[place]]]]).filter((bar) => bar[1] > 0), one.latency),
      barTable("energy", "µJ", detail.places.map((name, place) => [name, one.parts[place], [[place, one.parts[place]]]]).filter((bar) => bar[1] > 0), one.energy)));
}

function sizeText(bits) {
  if (bits === null) return "";
  const bytes = bits / 8, unit = [["GB", 1e9], ["MiB", 2 ** 20], ["KiB", 2 ** 10], ["B", 1]].find(([, size]) => bytes >= size) || ["B", 1];
  return bytes < 1 ? `${bits} bits` : `${numberText(bytes / unit[1])} ${unit[0]}`;
}

function compared(run, detail) {
  const energy = valueOf(run, "energy_pj"), latency = valueOf(run, "latency_cycles"), bound = detail.bound;
  const rows = detail.baselines.map(([name, cycles, spent, gap]) => [name, cycles, `${(cycles / latency).toFixed(2)} ×`, spent, `${(spent / energy).toFixed(2)} ×`, gap === null ? "" : `${numberText(gap, 3)} %`]);
  if (bound) rows.push([`lower bound over ${bound.covers}`, bound.latency, `${(bound.latency / latency).toFixed(2)} ×`, bound.energy, `${(bound.energy / energy).toFixed(2)} ×`, ""]);
  const words = bound ? [`The bound of the latency is the largest of: ${bound.terms.map(([name, cycles]) => `${name} ${numberText(cycles)}`).join(", ")} cycles.`] : [];
  return section("Beside baselines and bound", plainTable("baselines and bound", ["", "latency [cycles]", "of this run", "energy [µJ]", "of this run", "gap to the bound"], rows, [1, 2, 3, 4, 5]),
    words.map((line) => element("p", { class: "faint" }, line)));
}

function cores(detail) {
  const columns = [["core"], ["role"], ["nodes", "", 1], ["busy", "%", 1], ["array use", "%", 1], ["energy", "µJ", 1], ["fullest memory"], ["its peak", "%", 1]]
    .map(([words, unit, number], place) => ({ words, unit, number: Boolean(number), value: (row) => row[place] }));
  return section("Cores", new Table("cores", columns, detail.cores).node,
    element("details", {}, element("summary", {}, "memories"), plainTable("memories", ["memory", "capacity [KiB]", "peak [%]"], detail.memories, [1, 2])),
    element("details", {}, element("summary", {}, "links"), plainTable("links", ["link", "width [bits a cycle]", "moved [KiB]", "busy [%]", "of its width [%]"],
      detail.links.map(([name, width, ...numbers]) => [name, width === null ? "unlimited" : width, ...numbers]), [1, 2, 3, 4])));
}

function layersOfCores(detail) {
  const columns = [["layer"], ["operator"], ["nodes", "", 1], ["cores"], ["first start", "cycles", 1], ["last end", "cycles", 1], ["busy", "cycles", 1], ["energy on cores", "µJ", 1], ["cores wait before it", "cycles", 1], ["most for"]]
    .map(([words, unit, number], place) => ({ words, unit, number: Boolean(number), value: (row) => row[place] }));
  const table = new Table("layers", columns, detail.layers);
  table.node.classList.add("tall");
  return section("Layers", table.node);
}

function schedule(detail) {
  if (!detail.schedule) return section("Schedule", element("p", {}, "The schedule is too large for this page. tilewright report FOLDER writes it as schedule.html."));
  const place = element("div");
  const show = element("button", { type: "button", onclick: () => {
    // The frame gets its own document, with the numbers of this run in it.
    const parts = { TITLE: detail.schedule.title, DATA: detail.schedule.data };
    const text = DATA.frame.replace(/@(TITLE|DATA)@/g, (_, name) => parts[name]);
    place.replaceChildren(element("iframe", { srcdoc: text, title: detail.schedule.title }));
    show.remove();
  } }, "show the schedule");
  return section("Schedule", element("p", { class: "faint" }, "Rows of cores and links over time. Zoom with + and -, move with the arrow keys, point at a bar for details."), show, place);
}
