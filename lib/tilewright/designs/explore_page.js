// Page of a space of designs: its plots, filters and tables. explore_data.js computes what they show.
"use strict";

const MOST_TABLE_ROWS = 1000, MANY_POINTS = 3000, MOST_NAMES = 30;
const at = (id) => document.getElementById(id);
const payload = JSON.parse(at("data").textContent);
const views = payload.views.map((data) => new View(payload.columns, data));
const config = { responsive: true, displaylogo: false };
const page = { view: views[views.length - 1], kept: [], dimensions: [], sort: { key: null, turn: 1 } };

function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim(); }

function colourScale() {
  const colours = colour("scale").split(",");
  return colours.map((value, i) => [i / (colours.length - 1), value]);
}

function layout(more) {
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: colour("text"), size: 12 },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("faint"), activecolor: colour("text") },
    hoverlabel: { align: "left", bgcolor: colour("panel"), bordercolor: colour("line"), font: { color: colour("text") } }, ...more,
  };
}

function axis(title, more) {
  return {
    title: { text: title, standoff: 8 }, gridcolor: colour("line"), linecolor: colour("line"), zerolinecolor: colour("line"),
    automargin: true, ...more,
  };
}

// Layout of the plot axis for a column. If the column has few values of an axis of the space, each value has a tick.
function axisOf(column, values, isLog) {
  const levels = column.kind === "value" && !column.levels ? distinct(values) : [], title = plain(titleOf(column));
  const ticks = levels.length && levels.length <= MOST_LEVELS && (isLog || levels.length <= 8) ? { tickvals: levels } : {};
  return axis(title, { type: isLog ? "log" : "linear", ...(isLog ? logTicksOf(values) : {}), ...ticksOf(column), ...ticks });
}

// Ticks at 1, 2 and 5 times powers of ten for values within a factor of 1000, for which plotly would label all digits.
function logTicksOf(values) {
  const levels = distinct(values);
  return levels[levels.length - 1] / levels[0] < 1000 ? { dtick: "D2" } : {};
}

// Text of the ticks: cycles have a unit prefix such as M, and all other numbers have all digits, as in tables.
function ticksOf(column) {
  if (column.levels) {
    const step = Math.ceil(column.levels.length / MOST_NAMES), places = column.levels.map((_, i) => i).filter((i) => i % step === 0);
    return { tickvals: places, ticktext: places.map((i) => plain(column.levels[i])) };
  }
  return { tickformat: column.unit === "cycles" ? "~s" : ",.12~g" };
}

// Colour bar of a column.
function barOf(column) {
  return { title: { text: column ? plain(titleOf(column)) : "", side: column && column.levels ? "top" : "right" }, thickness: 14, outlinewidth: 0, ...(column ? ticksOf(column) : {}) };
}

function fill(select, options, chosen) {
  select.replaceChildren(...options.map(([value, text]) => new Option(text, value, false, value === chosen)));
}

function choices(view) {
  const words = { value: "", measure: "", use: "", energy: "energy, ", latency: "latency, " };
  const kinds = ["measure", "value", "use", "energy", "latency"];
  return kinds.flatMap((kind) => view.of(kind).map((column) => [column.key, words[kind] + titleOf(column)]));
}

function chooseView() {
  page.view = views[Number(at("network").value)];
  const view = page.view, data = view.data, options = choices(view);
  const objectives = [...data.objectives, ...data.measures.filter((key) => !data.objectives.includes(key))];
  const keep = (id, otherwise) => (options.some(([key]) => key === at(id).value) ? at(id).value : otherwise);
  const [y, x, third] = objectives;
  fill(at("x"), options, keep("x", x));
  fill(at("y"), options, keep("y", y));
  fill(at("colour"), [["", "on the front"], ...options], at("colour").dataset.chosen ? keep("colour", "") : data.objectives.includes(third) ? third : "");
  fill(at("measure"), data.measures.map((key) => [key, titleOf(view.column(key))]), keep("measure", data.measures[0]));
  const sampled = view.count < data.with_results;
  at("drawn").textContent = `${data.network}: ${data.front.toLocaleString("en-US")} of ${data.compared.toLocaleString("en-US")} compared designs are on the front. `
    + (sampled ? `Drawn: ${view.count.toLocaleString("en-US")} of ${data.with_results.toLocaleString("en-US")} designs with results: the front and a random sample of the other designs; space.csv has all designs. ` : "")
    + data.note;
  setLogs();
  drawParallel(false);
  drawAll();
  drawEffects();
}

function setLogs() {
  for (const id of ["x", "y"]) {
    const column = page.view.column(at(id).value), can = column && !column.levels;
    at(`${id}log`).disabled = !can;
    at(`${id}log`).checked = Boolean(can && page.view.count && isFar(page.view.values(column.key)));
  }
}

function drawAll() {
  const kept = page.kept.filter(Boolean).length;
  at("filtered").textContent = kept < page.view.count ? `${kept.toLocaleString("en-US")} of ${page.view.count.toLocaleString("en-US")} designs are inside the filters.` : "";
  drawScatter();
  drawFront();
}

function drawScatter() {
  const view = page.view, xKey = at("x").value, yKey = at("y").value, key = at("colour").value;
  if (!view.count) { Plotly.purge("scatter"); at("scatter").textContent = "No design has results."; at("detail").textContent = ""; return; }
  const x = view.values(xKey), y = view.values(yKey), column = key ? view.column(key) : null, scale = column && view.values(key);
  const rowsOf = (state) => view.rows.filter((row) => page.kept[row] && view.data.state[row] === state);
  const kind = view.count > MANY_POINTS ? "scattergl" : "scatter";
  const points = (rows, name, marker, tint) => traces.push({
    type: kind, mode: "markers", name, showlegend: false, customdata: rows, x: rows.map((row) => x[row]), y: rows.map((row) => y[row]),
    text: rows.map((row) => view.hover(row)), hovertemplate: "%{text}<extra></extra>",
    marker: { ...marker, ...(scale ? { color: rows.map((row) => scale[row]), coloraxis: "coloraxis" } : { color: tint }) },
  // Marker of the legend in a fixed colour: plotly would draw it black if each point has its own colour.
  }, { type: "scatter", mode: "markers", name, x: [null], y: [null], marker: { ...marker, color: tint }, hoverinfo: "skip" });
  const traces = [];
  if (at("unmet").checked) points(rowsOf(UNMET), "constraint not met", { symbol: "x", size: 6, opacity: 0.45 }, colour("other"));
  if (at("others").checked) points(rowsOf(DOMINATED), "dominated", { size: 6, opacity: 0.7 }, colour("other"));
  const front = rowsOf(ON_FRONT), measures = view.data.objectives;
  if (measures.includes(xKey) && measures.includes(yKey) && xKey !== yKey) {
    const stairs = lowerLeft(front, x, y);
    traces.push({
      type: "scatter", mode: "lines", name: "front of x and y alone", x: stairs.map((row) => x[row]), y: stairs.map((row) => y[row]),
      line: { shape: "hv", color: colour("front"), width: 2 }, hoverinfo: "skip",
    });
  }
  points(front, "Pareto front", { symbol: "diamond", size: front.length > 200 ? 7 : 10, line: { width: 1.5, color: colour("front") } }, colour("front"));
  Plotly.react("scatter", traces, layout({
    xaxis: axisOf(view.column(xKey), x, at("xlog").checked), yaxis: axisOf(view.column(yKey), y, at("ylog").checked),
    margin: { l: 60, r: 20, t: window.innerWidth < 600 ? 116 : 64, b: 50 }, legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" }, hovermode: "closest", uirevision: xKey + yKey,
    coloraxis: { colorscale: colourScale(), colorbar: barOf(column) },
    showlegend: true,
  }), config);
  if (!at("scatter").dataset.listens) {
    at("scatter").on("plotly_click", (event) => { const row = event.points[0].customdata; if (row !== undefined) drawDetail(row); });
    at("scatter").dataset.listens = "1";
  }
  const shown = front.length ? front.reduce((one, other) => (y[other] < y[one] ? other : one)) : page.kept.indexOf(true);
  if (shown >= 0) drawDetail(shown); else at("detail").textContent = "No design is inside the filters.";
}

// Show what limits a design: all parts of its energy and latency.
function drawDetail(row) {
  const view = page.view, text = [`<h3>${plain(view.data.names[row])}</h3><div>${plain(view.stateText(row))}</div>`];
  const line = (column) => `<div class="bar"><span>${plain(titleOf(column))}</span><b>${plain(view.text(column.key, row))}</b></div>`;
  text.push(...view.of("value").map(line), "<hr>", ...view.of("measure").map(line), ...view.of("use").map(line));
  for (const kind of ["energy", "latency"]) {
    const parts = view.parts(kind, row).filter((part) => part.value > 0);
    if (!parts.length) continue;
    text.push(`<h3>What limits it: ${kind}</h3>`, ...parts.map((part) =>
      `<div class="bar"><span>${plain(part.words)}</span><span>${numberText(part.value)} ${part.unit}, ${(100 * part.share).toFixed(1)} %</span><i style="width: ${100 * part.share}%"></i></div>`));
  }
  at("detail").innerHTML = text.join("") + "<p>Click a design in the plot or in the table of the front.</p>";
}

// Draw the parallel coordinates. If `keepFilters` is true, as after a change of colours only, the filters stay.
function drawParallel(keepFilters) {
  const view = page.view, filters = keepFilters ? page.dimensions.map((dimension) => dimension.constraintrange) : [];
  page.kept = new Array(view.count).fill(true);
  Plotly.purge("parallel");
  if (!view.count) { at("parallel").textContent = "No design has results."; return; }
  at("parallel").textContent = "";
  const measures = view.of("measure").filter((column) => view.data.measures.includes(column.key));
  const varied = view.of("value").filter((column) => distinct(view.values(column.key)).length > 1);
  page.dimensions = [...varied, ...measures].map((column) => dimensionOf(column, view.values(column.key)));
  filters.forEach((filter, i) => { if (filter) page.dimensions[i].constraintrange = filter; });
  page.kept = inside(page.dimensions, view.count);
  const longest = Math.max(...page.dimensions.flatMap((dimension) => (dimension.ticktext || []).map((text) => text.trim().length)), 0);
  const least = Math.max(105, 6.5 * longest + 40) * page.dimensions.length;
  at("parallel").style.width = `${Math.max(at("parallel").parentElement.clientWidth, least)}px`;
  const key = at("colour").value, column = key ? view.column(key) : null;
  const line = column
    ? { color: view.values(key), colorscale: colourScale(), showscale: true, colorbar: barOf(column) }
    : { color: view.data.state.map((state) => (state === ON_FRONT ? 1 : 0)), cmin: 0, cmax: 1, colorscale: [[0, colour("other")], [1, colour("front")]] };
  Plotly.newPlot("parallel", [{
    type: "parcoords", line, dimensions: page.dimensions, labelside: "top", labelfont: { color: colour("text"), size: 12 },
    tickfont: { color: colour("text"), size: 11 }, rangefont: { color: "rgba(0,0,0,0)", size: 1 }, unselected: { line: { color: colour("line"), opacity: 0.15 } },
  }], layout({ margin: { l: 70, r: 70, t: 60, b: 25 } }), config);
  at("parallel").on("plotly_restyle", () => {
    // The dimensions of the plot can have another order, because the user can drag axes.
    for (const dimension of page.dimensions) {
      dimension.constraintrange = at("parallel").data[0].dimensions.find((other) => other.key === dimension.key).constraintrange;
    }
    page.kept = inside(page.dimensions, view.count);
    drawAll();
  });
}

function drawEffects() {
  const view = page.view, key = at("measure").value;
  const plots = view.data.effects.map((_, i) => at("effects").children[i] || at("effects").appendChild(document.createElement("div")));
  for (const plot of [...at("effects").children].slice(plots.length)) plot.remove();
  if (!plots.length) { at("noeffects").textContent = "No axis has more than one value among the compared designs."; return; }
  at("noeffects").textContent = "";
  const column = view.column(key);
  for (const [i, effect] of view.data.effects.entries()) {
    const isEven = effect.values.length <= MOST_LEVELS || view.column(effect.axis).levels;
    const x = isEven ? effect.values.map((value) => plain(value)) : effect.values;
    const trace = (kind, tint, dash) => ({
      type: "scatter", mode: "lines+markers", name: kind, x, y: effect[kind][key], customdata: effect.designs, line: { color: tint, dash }, marker: { size: 7 },
      hovertemplate: `${plain(effect.axis)} %{x}: ${kind} %{y:,.4~g} ${column.unit}, %{customdata:,} designs<extra></extra>`,
    });
    const shown = [...effect.best[key], ...effect.median[key]];
    Plotly.react(plots[i], [trace("median", colour("median"), "dot"), trace("best", colour("front"), "solid")], layout({
      xaxis: axis(plain(effect.axis), isEven ? { type: "category" } : {}),
      yaxis: axis(plain(titleOf(column)), { ...(isFar(shown) ? { type: "log", ...logTicksOf(shown) } : { rangemode: "tozero" }), ...ticksOf(column) }),
      margin: { l: 60, r: 10, t: 15, b: 45 }, showlegend: false,
    }), { ...config, displayModeBar: false });
  }
}

function drawFront() {
  const view = page.view, data = view.data, { key, turn } = page.sort;
  const rows = view.rows.filter((row) => page.kept[row] && data.state[row] === ON_FRONT);
  const sortKey = key || data.objectives[0];
  if (sortKey) rows.sort((a, b) => turn * (view.values(sortKey)[a] - view.values(sortKey)[b]) || a - b);
  const words = data.objectives.map((name) => view.column(name).words).join(", ");
  at("about").textContent = `Designs that no compared design dominates in ${words}: ${rows.length.toLocaleString("en-US")}`
    + (rows.length < data.front ? ` of ${data.front.toLocaleString("en-US")} (filtered)` : "")
    + (rows.length > MOST_TABLE_ROWS ? `, the first ${MOST_TABLE_ROWS.toLocaleString("en-US")} below; front.csv has all` : "") + ".";
  const access = view.of("use").filter((column) => column.key === "access_cycles" && view.values(column.key).some((value) => value > 1));
  const columns = [...view.of("value"), ...view.of("measure"), ...access];
  const end = (column) => (column.levels ? "" : ' class="number"');
  const mark = (column) => (column.key === sortKey ? (turn > 0 ? " ▲" : " ▼") : "");
  const most = (kind, row) => { const part = view.parts(kind, row)[0]; return part ? `${plain(part.words)} ${(100 * part.share).toFixed(0)} %` : ""; };
  const head = `<th>design</th>${columns.map((column) => `<th${end(column)} data-key="${plain(column.key).replace(/"/g, "&quot;")}">${plain(titleOf(column))}${mark(column)}</th>`).join("")}<th>most energy</th><th>most latency</th>`;
  const body = rows.slice(0, MOST_TABLE_ROWS).map((row) => `<tr data-row="${row}"><td>${plain(data.names[row])}</td>`
    + columns.map((column) => `<td${end(column)}>${plain(view.text(column.key, row))}</td>`).join("") + `<td>${most("energy", row)}</td><td>${most("latency", row)}</td></tr>`);
  at("front").innerHTML = rows.length ? `<table><thead><tr>${head}</tr></thead><tbody>${body.join("")}</tbody></table>` : "";
}

at("front").addEventListener("click", (event) => {
  const head = event.target.closest("th[data-key]"), line = event.target.closest("tr[data-row]");
  if (head) {
    page.sort = { key: head.dataset.key, turn: page.sort.key === head.dataset.key ? -page.sort.turn : 1 };
    drawFront();
  } else if (line) {
    drawDetail(Number(line.dataset.row));
    at("detail").scrollIntoView({ block: "nearest", behavior: "smooth" });
  }
});
fill(at("network"), views.map((view, i) => [String(i), view.data.network]), String(views.length - 1));
at("network").addEventListener("change", chooseView);
for (const id of ["x", "y"]) at(id).addEventListener("change", () => { setLogs(); drawScatter(); });
at("colour").addEventListener("change", () => { at("colour").dataset.chosen = "1"; drawParallel(true); drawAll(); });
for (const id of ["xlog", "ylog", "others", "unmet"]) at(id).addEventListener("change", drawScatter);
at("measure").addEventListener("change", drawEffects);
at("clear").addEventListener("click", () => { drawParallel(false); drawAll(); });
function redraw() { drawParallel(true); drawAll(); drawEffects(); }
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
chooseView();
