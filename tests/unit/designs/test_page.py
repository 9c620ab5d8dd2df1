"""The interactive page of a space: its contents, its independence from other files, and its script."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tilewright.designs import page
from tilewright.designs.answer import answer_of
from tilewright.designs.exploration import Exploration
from tilewright.designs.page import FOLDER, explore_page, page_data, write_page

from tests.unit.designs.conftest import exploration, grid

NODE = shutil.which("node")


def without_plotly(text: str) -> str:
    """Return the page without the script of plotly."""
    return text.replace(page._plotly_script(), "")


def data_of(text: str) -> dict[str, Any]:
    """Return the data of a page, read as its script reads them."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found
    return json.loads(found[1])


def test_the_page_needs_nothing_else(tmp_path: Path) -> None:
    """The page loads no file and no address, and has equal bytes each time."""
    first = write_page(answer_of(grid()), tmp_path / "one.html").read_bytes()
    assert first == write_page(answer_of(grid()), tmp_path / "two.html").read_bytes()
    text = first.decode()
    assert text.count(page._plotly_script()) == 1
    assert not re.search(r"\b(src|href)\s*=|https?:|@[A-Z]+@", without_plotly(text))
    assert "a<b>" not in without_plotly(text)


def test_the_page_has_the_numbers_of_the_table() -> None:
    """The page has the numbers of the table in readable units, with front, dominators and effects."""
    answer = answer_of(grid())
    data = data_of(explore_page(answer))
    assert data == json.loads(json.dumps(page_data(answer)))
    for front, view in zip(answer.fronts, data["views"], strict=True):
        rows = front.rows
        assert view["network"] == front.network
        assert view["names"] == rows["design"].tolist()
        assert view["columns"]["energy_pj"] == pytest.approx((rows["energy_pj"] / 1e6).tolist(), rel=1e-8)
        assert view["columns"]["rows"] == rows["rows"].tolist()
        named = [view["names"][place] if place >= 0 else "" for place in view["dominated_by"]]
        assert named == rows["dominated_by"].tolist()
        assert [state == 0 for state in view["state"]] == rows["pareto"].tolist()
        assert set(view["unmet"].values()) == {"area_mm2 <= 30"}
    levels = next(column["levels"] for column in data["columns"] if column["key"] == "dram")
    assert levels == ["LPDDR4", "HBM", "a<b>"]
    assert {column["words"] for column in data["columns"] if column["kind"] == "energy"} == {
        "MAC",
        "rf",
        "sram",
        "dram",
    }


def test_the_words_of_the_page() -> None:
    """Assumptions, counts and causes stand in the page without any script."""
    text = without_plotly(explore_page(answer_of(grid())))
    for words in (
        "Networks: mobilenet, bert.",
        "<li>model corrected</li>",
        "energies, latencies and EDPs are added up; the area is counted only once",
        "72 designs: 12 excluded by constraints, 60 evaluated",
        "conv48: 4,048 bits do not fit sram",
        "a bandwidth of 0 &lt;bits&gt;",
        "<td>all networks</td><td>energy</td><td>design-10</td><td>rows 8, sram 2048, dram HBM, rows_x_2 16</td>",
    ):
        assert words in text


def test_a_large_space_is_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page of a large space keeps the whole front and the same sample of other designs each time."""
    monkeypatch.setattr(page, "MOST_ROWS", 90)
    answer = answer_of(grid())
    views = page_data(answer)["views"]
    for front, view in zip(answer.fronts, views, strict=True):
        assert len(view["names"]) == 30 < view["with_results"]
        assert view["state"].count(0) == len(front.members)
        assert view["names"] == sorted(view["names"], key=lambda name: int(name.removeprefix("design-")))
    assert views == page_data(answer_of(grid()))["views"]
    others = [{name for name, state in zip(v["names"], v["state"], strict=True) if state} for v in views]
    assert len(others[0] & others[2]) >= 10


@pytest.mark.parametrize(
    "space",
    [
        exploration([]),
        exploration([{"status": "infeasible", "reason": "too small"}] * 3, ("one", "two", "three")),
        exploration([{"energy_pj": 1.0, "latency_cycles": 1.0}]),
        exploration([{"energy_pj": 1.0, "latency_cycles": 1.0, "unmet": "area_mm2 <= 2"}]),
    ],
    ids=["no designs", "all infeasible", "one without an area", "constraint not met"],
)
def test_pages_of_little(space: Exploration) -> None:
    """A space with few or no results has a page."""
    text = explore_page(answer_of(space))
    assert data_of(text)["views"]
    assert ("No design has results" in without_plotly(text).split("<script")[0]) == answer_of(
        space
    ).overall.compared.empty


def test_plotly_is_imported_for_the_page_only() -> None:
    """Plotly is imported only for a page."""
    code = "import sys, tilewright.designs.page, tilewright.designs.tables; assert 'plotly' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def in_node(expression: str, answer_data: dict[str, Any]) -> Any:
    """Return the value of an expression in the script, with `views` from the data."""
    script = f"""
const {{ View, dimensionOf, inside, lowerLeft }} = require({json.dumps(str(FOLDER / "explore_data.js"))});
const data = JSON.parse(require("fs").readFileSync(0, "utf-8"));
const views = data.views.map((view) => new View(data.columns, view));
console.log(JSON.stringify({expression}));"""
    done = subprocess.run(
        [NODE or "node", "-e", script], input=json.dumps(answer_data), capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.skipif(NODE is None, reason="node is not installed")
class TestScript:
    """Functions in the script of the page."""

    def test_hover(self) -> None:
        """The text of a design has name, state, values, measures and largest parts."""
        data = page_data(answer_of(grid()))
        text = in_node("views[2].hover(views[2].data.names.indexOf('design-10'))", data)
        assert text.startswith("<b>design-10</b>, on the Pareto front<br>rows 8, sram 2048, dram HBM, rows_x_2 16<br>")
        assert "energy: 2,043 µJ<br>latency: 21,665,918 cycles<br>" in text
        assert text.endswith("most energy: dram, 50 %<br>most latency: ideal, 50 %")

    def test_filters(self) -> None:
        """Rows inside all ranges of every filter stay."""
        dimensions = [{"values": [1, 2, 3, 4], "constraintrange": [[1, 1], [3, 9]]}]
        dimensions.append({"values": [0, 0, 5, 0], "constraintrange": [-1, 1]})
        assert in_node(f"inside({json.dumps(dimensions)}, 4)", {"views": []}) == [True, False, False, True]

    def test_stairs(self) -> None:
        """The lower left points come in rising x, without points that lack a number."""
        assert in_node("lowerLeft([0, 1, 2, 3, 4], [3, 1, 2, null, 2], [1, 5, 6, 0, 4])", {"views": []}) == [1, 4, 0]

    def test_axes_of_parallel_coordinates(self) -> None:
        """An axis with few values has them at equal distances; one with values far apart is logarithmic."""
        data = page_data(answer_of(grid()))
        few = in_node("dimensionOf(views[0].column('rows'), views[0].values('rows'))", data)
        assert few["ticktext"] == ["8", "16", "32", "64", "128"]
        assert set(few["values"]) == {0, 1, 2, 3, 4}
        far = in_node("dimensionOf(views[0].column('area_mm2'), views[0].values('area_mm2'))", data)
        assert len(set(far["ticktext"])) == len(far["ticktext"])
        assert [text for text in far["ticktext"] if text.strip()] == ["0.5", "1", "2", "5", "10", "20"]
