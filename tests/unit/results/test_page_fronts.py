"""Pareto fronts on the page: drawings and words for the front of a run, and for all runs of a group.

The scripts of the page run in Node, on a document that keeps elements, attributes and texts.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import tilewright
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.results.front_text import front_lines
from tilewright.results.page.document import FOLDER
from tilewright.results.page.one_core import front_part

NODE = shutil.which("node")
TINY = Path(__file__).resolve().parents[2] / "workflow/tiny"
DOCUMENT = """
"use strict";
const WIDTH = Number(process.env.WIDTH || 366);
class Node {
  constructor(name) { Object.assign(this, { name, attributes: {}, children: [], clientWidth: WIDTH, dataset: {} }); }
  setAttribute(key, value) { this.attributes[key] = String(value); }
  addEventListener() {}
  append(...children) {
    for (const one of children) if (one instanceof Node) one.parent = this;
    this.children.push(...children);
  }
  replaceChildren(...children) { this.children = []; this.append(...children); }
  remove() { this.parent.children = this.parent.children.filter((one) => one !== this); }
  get text() { return this.children.map((one) => (one instanceof Node ? one.text : String(one))).join(""); }
  getComputedTextLength() { return 7 * this.text.length; }
}
globalThis.ResizeObserver = class { constructor(call) { this.call = call; } observe() { this.call(); } };
globalThis.getComputedStyle = () => ({ fontSize: "15px" });
globalThis.document = {
  body: null,
  createElement: (name) => new Node(name), createElementNS: (_, name) => new Node(name),
  getElementById: () => ({ textContent: DATA_TEXT }),
};
const all = (node) => (node instanceof Node ? [node, ...node.children.flatMap(all)] : []);
"""
COLUMNS = [("run", "run", ""), ("energy_pj", "energy", "µJ"), ("latency_cycles", "latency", "cycles")]
COLUMNS += [("latency_s", "time", "s")]
ROWS: list[list[Any]] = [["a", 3.0, 120, 1.2], ["b", 2.5, 150, 3.0], ["c", 9.0, 400, 4.0]]
FRONTS: dict[str, Any] = {
    "a": {
        "lines": ["what a costs", "more of a"],
        "points": [[4.0, 100, ["least latency"]], [3.0, 120, ["knee", "this run"]], [2.9, 200, ["least energy"]]],
        "least_energy": 2.8,
        "least_latency": 99,
    },
    "b": {
        "lines": ["what b costs"],
        "points": [[2.6, 140, ["least latency"]], [2.55, 160, []], [2.0, 180, ["knee", "least energy"]]],
        "least_energy": 2.0,
        "least_latency": 140,
    },
    "c": {"lines": ["no Pareto front of the network: it has 1 layer without a front (x)"], "points": []},
}


def ran(script: str, rows: list[list[Any]] = ROWS, left_out: tuple[str, ...] = (), width: int = 366) -> Any:
    """Values that a script with the functions of the page prints as JSON."""
    if NODE is None:
        pytest.skip("needs Node")
    columns = [{"key": key, "words": words, "unit": unit, "number": bool(unit)} for key, words, unit in COLUMNS]
    group = {"name": "net", "runs": [row[0] for row in rows], "lines": []}
    details = {name: {"flow": "single", "front": front} for name, front in FRONTS.items()}
    data = {"columns": columns, "rows": rows, "groups": [group], "notes": {}, "details": details}
    data |= {"fronts_left_out": list(left_out)} if left_out else {}
    texts = [(FOLDER / name).read_text("utf-8") for name in ("base.js", "charts.js", "fronts.js", "overview.js")]
    parts = [f"const DATA_TEXT = {json.dumps(json.dumps(data))};", DOCUMENT, *texts]
    parts += ["const GROUP = overviewGroups(new Set(DATA.rows.map((row) => row[0])))[0];", script]
    given = {"WIDTH": str(width)}
    done = subprocess.run([NODE, "-"], input="\n".join(parts), capture_output=True, text=True, check=False, env=given)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def told(code: str) -> str:
    """A script that prints an expression."""
    return f"console.log(JSON.stringify({code}));"


def test_the_front_of_a_run_has_each_point_and_its_role() -> None:
    """Each point is drawn with its role: the knee as a diamond, and the run filled, also if it is not on the front."""
    script = told(
        "frontPoints('b', frontOf('b'), { all: true }).map((one) => [one.x, one.y, one.shape, one.strong, one.name])"
    )
    found = {(x, y): [shape, strong, name] for x, y, shape, strong, name in ran(script)}
    assert found == {
        (140, 2.6): ["circle", False, "least latency"],
        (160, 2.55): ["circle", False, ""],
        (180, 2.0): ["diamond", False, "knee, least energy"],
        (150, 2.5): ["circle", True, "this run"],
    }
    assert ran(told("frontOf('c')")) is None
    assert ran(told("frontSteps([[1, 9], [2, 5], [4, 3]])")) == [[1, 9], [2, 9], [2, 5], [4, 5], [4, 3]]


def test_the_page_of_a_run_says_and_lists_its_front() -> None:
    """The page of a run has sentences, lower bounds, a chart and a table of all points; without points it has the
    reason.
    """
    text = ran(told("frontSection('a', DATA.details.a).text"))
    for words in ("what a costs", "more of a", "2.8 µJ and 99 cycles", "the 3 points as a table", "knee, this run"):
        assert words in text
    labels = "all(frontSection('a', DATA.details.a)).map((one) => one.attributes['aria-label']).filter(Boolean)"
    found = ran(told(labels))
    assert {"Pareto front of a", "points of the front", "knee, this run: 120 cycles, 3 µJ"} <= set(found)
    assert "1 layer without a front (x)" in ran(told("frontSection('c', DATA.details.c).text"))
    assert ran(told("frontSection('a', { flow: 'single' })")) is None


def test_the_fronts_of_a_group_are_drawn_together() -> None:
    """The fronts of a group are drawn together, with ends, knee and run, and links to the runs' pages.

    If all runs have a clock, the axis is time.
    """
    labels = "all(frontsOfGroup(GROUP)).filter((one) => one.name === 'a').map((one) => one.attributes)"
    found = {one["aria-label"]: one["href"] for one in ran(told(labels))}
    assert found["a, knee, this run: 1.2 s, 3 µJ"] == "#run=a"
    assert found["b, this run: 3 s, 2.5 µJ"] == "#run=b"
    assert found["b, knee, least energy: 3.6 s, 2 µJ"] == "#run=b"
    assert len(found) == 6
    cycles = [[*row[:3], None] for row in ROWS]
    found = {one["aria-label"]: one["href"] for one in ran(told(labels), cycles)}
    assert "a, knee, this run: 120 cycles, 3 µJ" in found
    text = ran(told("overviewGroup(GROUP).text"))
    assert "a: what a costs" in text
    assert "b: what b costs" in text
    assert "each of 2 runs" in text


def test_fronts_that_are_not_drawn_are_counted() -> None:
    """Fronts of runs whose details have no room on the page are counted; a group without fronts has no chart."""
    assert "not drawn here: 1 of 3." in ran(told("frontsOfGroup(GROUP).text"), left_out=("c",))
    assert ran(told("frontsOfGroup(GROUP)"), ROWS[2:]) is None


@pytest.mark.parametrize("width", [300, 366, 1200])
@pytest.mark.parametrize("part", ["frontSection('b', DATA.details.b)", "frontsOfGroup(GROUP)"])
def test_charts_fit_the_width_and_have_no_colours_of_their_own(width: int, part: str) -> None:
    """Charts fit a telephone of 390 pixels; every colour is one of the style, which has a value for dark mode."""
    script = f"""
const nodes = all({part}), root = nodes.find((one) => one.name === "svg");
const texts = nodes.filter((one) => one.name === "text" && !one.attributes.transform);
const ends = texts.map((one) => {{
  const x = Number(one.attributes.x), wide = 7 * one.text.length;
  const at = {{ middle: 0.5, end: 1 }}[one.attributes["text-anchor"]] || 0;
  return [one.text, x - at * wide, x + (1 - at) * wide];
}});
const colours = nodes.flatMap((one) => [one.attributes.fill, one.attributes.stroke]).filter(Boolean);
console.log(JSON.stringify([Number(root.attributes.width), ends, [...new Set(colours)]]));
"""
    drawn, ends, colours = ran(script, width=width)
    assert drawn == width
    assert len(ends) > 5
    assert all(text for text, _, _ in ends)
    for text, left, right in ends:
        assert left >= -1, text
        assert right <= width + 1, text
    assert colours
    style = (FOLDER / "page.css").read_text("utf-8")
    light, dark = (set(re.findall(r"(--\w+):", part)) for part in style.split("}")[:2])
    for colour in colours:
        assert colour == "none" or re.fullmatch(r"var\((--\w+)\)", colour)
        assert colour == "none" or colour[4:-1] in light & dark


def test_the_page_has_the_front_of_the_summary(tmp_path: Path) -> None:
    """The page has energies in µJ, cycles, roles and bounds from the summary; a run without a front has none."""
    given = {"hardware": TINY / "hardware/narrow.yaml", "mapping": TINY / "mapping/free.yaml"}
    summary = tilewright.map(**given, workload=TINY / "workload/two_layers.yaml", front=True).summary
    made, points = front_part(summary)["front"], summary["front"]["points"]
    assert [row[:2] for row in made["points"]] == [
        pytest.approx([one[ENERGY_PJ] / 1e6, one[LATENCY_CYCLES]], rel=1e-8) for one in points
    ]
    roles = [role for row in made["points"] for role in row[2]]
    assert {"least latency", "knee", "least energy"} <= set(roles)
    assert made["points"][summary["front"]["knee"]][2].count("knee") == 1
    assert made["lines"] == list(front_lines(summary))
    assert made["least_energy"] <= min(row[0] for row in made["points"]) * (1 + 1e-8)
    assert made["least_latency"] <= min(row[1] for row in made["points"])
    assert front_part({name: value for name, value in summary.items() if name != "front"}) == {}
