"""The picture above the table of runs: its runs and their order, lengths of bars, and words.

The scripts of the page run in Node, on a document that only keeps elements, attributes and texts.
"""

import json
import shutil
import subprocess
from typing import Any

import pytest
from tilewright.results.page.document import FOLDER

NODE = shutil.which("node")
DOCUMENT = """
"use strict";
class Node {
  constructor(name) { this.name = name; this.attributes = {}; this.children = []; }
  setAttribute(key, value) { this.attributes[key] = String(value); }
  addEventListener() {}
  append(...children) { this.children.push(...children); }
}
globalThis.document = {
  createElement: (name) => new Node(name), createElementNS: (_, name) => new Node(name),
  getElementById: () => ({ textContent: DATA_TEXT }),
};
"""
COLUMNS = [("run", "run", ""), ("limited_by", "limited by", ""), ("energy_pj", "energy", "µJ")]
COLUMNS += [("latency_cycles", "latency", "cycles"), ("latency_s", "time", "s"), ("area_mm2", "area", "mm²")]
ROWS: list[list[Any]] = [
    ["a", "spatial stall 50%", 4.0, 100, None, None],
    ["b", None, 1.0, 300, None, 2.0],
    ["c", "DRAM port", 2.0, 300, 0.5, None],
    ["lost", None, None, None, None, None],
]
pytestmark = pytest.mark.skipif(NODE is None, reason="needs Node")


def ran(rows: list[list[Any]], script: str, lines: tuple[str, ...] = ()) -> Any:
    """The JSON that a script with the functions of the page prints."""
    columns = [{"key": key, "words": words, "unit": unit, "number": bool(unit)} for key, words, unit in COLUMNS]
    group = {"name": "net", "runs": [row[0] for row in rows], "lines": list(lines)}
    data = {"columns": columns, "rows": rows, "groups": [group], "notes": {"a": "no unit"}}
    texts = [(FOLDER / name).read_text("utf-8") for name in ("base.js", "charts.js", "fronts.js", "overview.js")]
    given = f"const DATA_TEXT = {json.dumps(json.dumps(data))};"
    parts = [given, DOCUMENT, *texts, "const NAMES = new Set(DATA.rows.map((row) => row[0]));", script]
    assert NODE is not None
    done = subprocess.run([NODE, "-"], input="\n".join(parts), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_runs_and_quantities_of_a_group() -> None:
    """Runs are ordered by energy times cycles, or by time if all runs have a clock; runs without a result are
    left out.
    """
    told = "console.log(JSON.stringify(overviewGroups(NAMES).map((one) => [one.runs, one.columns.map((c) => c.key)])));"
    assert ran(ROWS, told) == [[["b", "a", "c"], ["energy_pj", "latency_cycles", "area_mm2"]]]
    timed = [[*row[:4], 0.25, None] for row in ROWS[:3]]
    assert ran(timed, told) == [[["b", "c", "a"], ["energy_pj", "latency_s"]]]


def test_what_is_said() -> None:
    """The text names the run with the least of each quantity; equal quantities, unknown areas and undrawn runs too."""
    told = "console.log(JSON.stringify(overviewWords(overviewGroups(NAMES)[0])));"
    assert ran(ROWS, told) == "least energy: b (1 µJ); least latency: a (100 cycles)"
    equal = [[name, None, 2.0, 100, None, None] for name in "ab"]
    assert ran(equal, told) == "equal energy; equal latency; area: not known of any run"
    many = [[f"r{n}", None, 1.0 + n, 100, None, None] for n in range(15)]
    said = ran(many, told)
    assert said.startswith("least energy: r0 (1 µJ); equal latency; area")
    assert "drawn: 12 of 15 runs, those with the least energy times latency" in said
    many[14][3] = 1
    many[14][2] = 1e9
    assert "least latency: r14 (1 cycles)" in ran(many, told)
    drawn = "console.log(JSON.stringify(overviewGroups(NAMES)[0].runs));"
    assert ran(many, drawn) == [*(f"r{n}" for n in range(12)), "r14"]
    assert "of the 2 runs with a known area: b" in ran([*ROWS[:2], [*ROWS[2][:5], 3.0]], told)


def test_bars_have_the_length_of_their_numbers() -> None:
    """The longest bar fills its place, the least is marked by colour and word, and each bar has a text for screen
    readers.
    """
    bars = """
const found = [];
const walk = (node) => {
  if (node.name === "svg") {
    const rect = node.children.find((one) => one.name === "rect");
    found.push([node.attributes["aria-label"], rect.attributes.width, rect.attributes.fill]);
  }
  (node.children || []).forEach(walk);
};
overview(NAMES).forEach(walk);
console.log(JSON.stringify(found));
"""
    assert ran(ROWS, bars)[:6] == [
        ["b: energy 1 µJ, the least", "25%", "var(--front)"],
        ["b: latency 300 cycles", "100%", "var(--bar)"],
        ["b: area 2 mm²", "100%", "var(--bar)"],
        ["a: energy 4 µJ", "100%", "var(--bar)"],
        ["a: latency 100 cycles, the least", f"{100 * 100 / 300}%", "var(--front)"],
        ["a: area no unit", "0%", "var(--bar)"],
    ]


def test_the_picture_says_what_limits_each_run_and_what_is_assumed() -> None:
    """The limit of each run and the assumptions are text on the page; the picture has a name for screen readers."""
    texts = """
const found = [];
const walk = (node) => {
  if (typeof node === "string") found.push(node);
  if (node.name === "details") found.push(String(node.attributes.open));
  if (node.attributes && node.attributes.role === "group") found.push(`group ${node.attributes["aria-label"]}`);
  (node.children || []).forEach(walk);
};
overview(NAMES).forEach(walk);
console.log(JSON.stringify(found));
"""
    found = ran(ROWS, texts, ("energies have different sources",))
    assert {"limited by spatial stall 50%", "limited by DRAM port", "limit not known", "net (3 runs)"} <= set(found)
    assert "energies have different sources" in found
    assert "group net: least energy: b (1 µJ); least latency: a (100 cycles)" in found
    assert "1 µJ, least" in found


def test_the_style_has_no_fixed_colours_and_no_wide_rows() -> None:
    """Colours are those of the page in light and dark mode; on a narrow page, the name has its own line."""
    script, style = ((FOLDER / name).read_text("utf-8") for name in ("overview.js", "page.css"))
    assert "#" not in script.replace('"#', "")
    assert "https://" not in script
    assert ".overview .name { grid-column: 1 / -1; }" in style
