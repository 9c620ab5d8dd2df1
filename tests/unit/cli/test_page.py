"""`tilewright page`: the contents of the page, and its behaviour in a browser."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tilewright
from tilewright.base.artifacts.digests import document_text
from tilewright.base.artifacts.envelope import read_artifact, write_document, write_rows
from tilewright.base.artifacts.seals import sealed_document
from tilewright.cli.main import main

from tests.chromium import Page, chromium, find_chromium
from tests.unit.cli.multi_core import GA, cut_and_cost, inputs, write_network

TINY = Path(__file__).resolve().parents[2] / "workflow" / "tiny"
NASTY = "</script><b>&amp;'\""
"""Name of a layer with HTML characters, which must appear unchanged."""


def map_tiny(folder: Path, hardware: str, *options: str) -> None:
    """Run the network of two layers like the pipeline, with its descriptions beside the run."""
    core, network = folder / f"hardware/{hardware}/accelerator.json", folder / "workload/two/corrected/workload.json"
    if not core.is_file():
        assert main(["parse", "hardware", str(TINY / f"hardware/{hardware}.yaml"), "-o", str(core)]) == 0
    if not network.is_file():
        written = str(TINY / "workload/two_layers.yaml")
        assert main(["parse", "workload", written, "--model", "corrected", "-o", str(network)]) == 0
    given = ["--hardware", str(core), "--workload", str(network), "--mapping", str(TINY / "mapping/free.yaml")]
    limits = ["--model", "corrected", "--lpf-limit", "3", "--no-store", *options]
    assert main(["map", *given, *limits, "-o", str(folder / "single" / f"two_layers-{hardware}")]) == 0


def renamed(run: Path, name: str) -> None:
    """Rename the first layer of a run."""
    layers, summary = read_artifact(run / "layers.jsonl"), read_artifact(run / "summary.json")
    rows: list[Any] = json.loads(json.dumps(layers.payload))
    old = rows[0]["layer"]["name"]
    rows[0]["layer"]["name"], rows[0]["layer_names"] = name, [name]
    write_rows(run / "layers.jsonl", layers.schema, rows, layers.provenance)
    index = [[name if layer == old else layer, row] for layer, row in summary.payload["layer_index"]]
    write_document(run / "summary.json", summary.schema, summary.payload | {"layer_index": index}, summary.provenance)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make three runs on one core, a run on two cores, and a failed run.

    One of the three has written bottlenecks, two have a front, and one has a layer name with HTML characters.
    """
    folder = tmp_path_factory.mktemp("results")
    map_tiny(folder, "wide")
    map_tiny(folder, "narrow", "--front")
    run = folder / "single/two_layers-wide"
    assert main(["explain", str(run), "-o", str(run / "report")]) == 0
    shutil.copytree(folder / "single/two_layers-narrow", folder / "single/nasty")
    renamed(folder / "single/nasty", NASTY)
    network, made = write_network(folder), folder / "multi/duo"
    cut_and_cost(network, made)
    given = [*inputs(network, made), "-o", str(made)]
    assert main(["allocate", *given, *GA]) == 0
    assert main(["schedule", *given, "--core-allocation", str(made / "allocation.json")]) == 0
    failed = {"run": "lost", "flow": "single", "state": "failed", "workload": "two_layers", "hardware": "lost"}
    (folder / "unfinished.json").write_text(json.dumps([failed]))
    return folder


@pytest.fixture(scope="module")
def page(results: Path) -> Path:
    """Make the page of all runs."""
    return tilewright.page([results / "single", results / "multi"], results / "page.html", results / "unfinished.json")


def data_of(page: Path) -> dict[str, Any]:
    """Return the data that the scripts of a page read."""
    text = page.read_text("utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


def rows_of(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return run -> its cells by column."""
    keys = [column["key"] for column in data["columns"]]
    rows = [dict(zip(keys, row, strict=True)) for row in data["rows"]]
    return {row["run"]: row for row in rows}


def test_numbers_are_those_of_the_runs(results: Path, page: Path) -> None:
    """The page has the numbers of the runs in the units of its heads; layers and memories add up to the totals."""
    data = data_of(page)
    rows = rows_of(data)
    assert list(rows) == ["nasty", "two_layers-narrow", "two_layers-wide", "duo", "lost"]
    assert (rows["lost"]["state"], rows["lost"]["energy_pj"]) == ("failed", None)
    for run, row in rows.items():
        if run == "lost":
            continue
        folder = next(results.glob(f"*/{run}"))
        summary = read_artifact(folder / "summary.json").payload
        assert row["energy_pj"] == pytest.approx(summary["energy_pj"] / 1e6, rel=1e-8)
        assert row["latency_cycles"] == pytest.approx(summary["latency_cycles"], rel=1e-8)
        detail = data["details"][run]
        assert sum(value for _, _, value in detail["energy"]) == pytest.approx(row["energy_pj"], rel=1e-7)
        if detail["flow"] == "single":
            records = [detail["records"][record] for _, record in detail["layers"]]
            assert sum(one["energy"] for one in records) == pytest.approx(row["energy_pj"], rel=1e-7)
            assert sum(sum(one["parts"]) for one in records) == pytest.approx(row["energy_pj"], rel=1e-7)
            assert sum(value for _, value in detail["cycles"]) == row["latency_cycles"]
            assert sum(sum(one["cycles"]) for one in records) == row["latency_cycles"]


def test_ranges_of_costs_are_told_of_several_cores(results: Path, tmp_path: Path) -> None:
    """The page of a run on several cores has the range of its costs if the summary has it."""
    run = tmp_path / "multi" / "duo"
    shutil.copytree(results / "multi" / "duo", run)
    summary = read_artifact(run / "summary.json")
    ranges = {"cost_ranges": {"energy_pj": [1e6, 3e6], "area_mm2": None, "parts": []}}
    write_document(run / "summary.json", summary.schema, summary.payload | ranges, summary.provenance)
    (detail,) = data_of(tilewright.page([tmp_path / "multi"], tmp_path / "page.html"))["details"].values()
    assert "within the ranges of costs: energy 1 µJ to 3 µJ" in detail["notes"]


def test_written_bottlenecks_say_what_new_ones_say(results: Path, page: Path, tmp_path: Path) -> None:
    """Written bottlenecks give the same page as new ones, unless they belong to other records."""
    alone = tilewright.page([results / "single/two_layers-wide"], tmp_path / "written.html")
    moved = results / "single/two_layers-wide/report/bottlenecks.json"
    content = moved.read_text()
    try:
        moved.unlink()
        anew = tilewright.page([results / "single/two_layers-wide"], tmp_path / "anew.html")
        assert anew.read_bytes() == alone.read_bytes()
        other = json.loads(content)
        other["made_of"]["layers"] = "another"
        del other["file_digest"]
        moved.write_bytes(sealed_document(document_text(other | {"limits": {}, "network_limit": None})))
        again = tilewright.page([results / "single/two_layers-wide"], tmp_path / "again.html")
        assert again.read_bytes() == alone.read_bytes()
    finally:
        moved.write_text(content)
    assert data_of(alone)["details"]["two_layers-wide"]["limit"]["text"]


def test_page_is_one_file_with_equal_bytes(results: Path, page: Path, tmp_path: Path) -> None:
    """The page is one file with equal bytes each time; it loads nothing, and names cannot end its data."""
    again = tilewright.page([results / "single", results / "multi"], tmp_path / "p.html", results / "unfinished.json")
    assert again.read_bytes() == page.read_bytes()
    text = page.read_text("utf-8")
    assert text.count("</script>") == 2
    assert "http://www.w3.org/2000/svg" in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert NASTY in [name for name, _ in data_of(page)["details"]["nasty"]["layers"]]


def test_runs_of_one_name_are_told_apart(results: Path, tmp_path: Path) -> None:
    """Runs of one name get the names of their folders, and a folder that is given twice is one run."""
    for side in ("a", "b"):
        shutil.copytree(results / "single/two_layers-narrow", tmp_path / side / "same")
    runs = [tmp_path / "a/same", tmp_path / "b/same", tmp_path / "a"]
    assert list(rows_of(data_of(tilewright.page(runs, tmp_path / "p.html")))) == ["a/same", "b/same"]


@pytest.mark.parametrize(("given", "told"), [([], "give folders of runs"), (["nowhere"], "no finished run")])
def test_without_a_run_there_is_no_page(given: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A page without a run is refused, and no file is written."""
    assert main(["page", *given, "-o", "never.html"]) == 2
    assert told in capsys.readouterr().err
    assert not Path("never.html").exists()


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    """Return a browser, or skip the test without one."""
    program = find_chromium()
    if program is None:
        pytest.skip("needs Chromium, of which none is installed")
    with chromium(program) as tab:
        yield tab


@pytest.fixture
def tab(browser: Page, page: Path) -> Iterator[Page]:
    """Open the page, and assert afterwards that the browser has no complaint."""
    browser.open("about:blank", "true")
    browser.complaints.clear()
    browser.resize(1280, 900)
    browser.open(page.as_uri())
    yield browser
    assert browser.complaints == []


FIRST_CELLS = "[...document.querySelectorAll('tbody tr:not(.open) th')].map((one) => one.textContent)"
FILTER = "document.getElementById('filter')"
HEADINGS = "[...document.querySelectorAll('h2, h3')].map((one) => one.textContent)"
HEADING = "document.querySelector('main h1').textContent"
PAIR = "#compare=two_layers-wide&with=duo"


def go(tab: Page, place: str) -> None:
    """Follow an address within the page."""
    tab.run(f"location.hash = {json.dumps(place)}")
    tab.settle()


def put(tab: Page, element: str, value: str) -> None:
    """Enter or choose a value in a field."""
    tab.run(
        f"(() => {{ const one = {element}; one.focus(); one.value = {json.dumps(value)};"
        " for (const name of ['input', 'change']) one.dispatchEvent(new Event(name)); })()"
    )
    tab.settle()


def test_table_is_sorted_and_filtered(tab: Page) -> None:
    """A click on a column head sorts the table, and a second click reverses the order; missing values stay last.

    A text and choices filter the table.
    """
    names = ["nasty", "two_layers-narrow", "two_layers-wide", "duo", "lost"]
    assert tab.run(FIRST_CELLS) == names
    energies = "[...document.querySelectorAll('tbody tr')].map((one) => one.cells[5].textContent)"
    for place, order in ((5, "descending"), (5, "ascending")):
        tab.run(f"document.querySelectorAll('thead button')[{place}].click()")
        assert tab.run(f"document.querySelectorAll('thead th')[{place}].getAttribute('aria-sort')") == order
        values = [float(text.replace(",", "")) for text in tab.run(energies) if text]
        assert values == sorted(values, reverse=order == "descending")
        assert len(values) == 4
        assert tab.run(FIRST_CELLS)[-1] == "lost"
    tab.run("document.querySelectorAll('thead button')[0].click()")
    assert tab.run(FIRST_CELLS) == sorted(names)
    put(tab, FILTER, "two_layers wide")
    assert tab.run(FIRST_CELLS) == ["two_layers-wide"]
    assert tab.run("document.getElementById('count').textContent") == "1 of 5 runs"
    put(tab, FILTER, "")
    flows = "[...document.querySelectorAll('select')].find((one) => one.textContent.includes('several cores'))"
    put(tab, flows, "several cores")
    assert tab.run(FIRST_CELLS) == ["duo"]


def test_every_link_leads_to_its_view(tab: Page) -> None:
    """Every link of every view leads to a view, and the browser can go back."""
    seen, waiting = set[str](), ["#runs", "#pareto", "#compare"]
    while waiting:
        place = waiting.pop()
        seen.add(place)
        go(tab, place)
        links = tab.run("[...document.querySelectorAll('a')].map((one) => one.getAttribute('href'))")
        assert all(link.startswith("#") for link in links)
        heading = tab.run(HEADING)
        if place.startswith("#run="):
            assert heading == place.removeprefix("#run=")
        waiting += [link for link in links if link not in seen and link not in waiting and link != "#main"]
    assert {"#run=nasty", "#run=duo", "#run=two_layers-wide", "#compare=duo"} <= seen
    tab.run("history.back()")
    tab.wait(f"{HEADING} !== {json.dumps(heading)}")
    go(tab, "#run=nobody")
    assert tab.run(HEADING) == "Runs"


def test_run_is_shown_down_to_its_loops(tab: Page) -> None:
    """A run is shown with its totals, and each layer with its loop nest and memory levels."""
    go(tab, "#run=nasty")
    assert NASTY in "".join(tab.run(FIRST_CELLS))
    assert tab.run("document.querySelectorAll('main b').length") == 0
    assert tab.run("document.querySelectorAll('main pre').length") == 0
    tab.run("document.querySelector('tr button[aria-expanded]').click()")
    assert "for " in tab.run("document.querySelector('main pre').textContent")
    assert "Memory levels" in tab.run(HEADINGS)
    go(tab, "#run=two_layers-wide")
    assert {"What limits it", "Where cycles and energy go", "Roofline", "Layers"} <= set(tab.run(HEADINGS))


def test_run_of_several_cores_says_what_limits_it(tab: Page, page: Path) -> None:
    """The limits of a run on several cores add up to the latency, in the data, the text and the table."""
    detail, row = data_of(page)["details"]["duo"], rows_of(data_of(page))["duo"]
    assert [sum(cycles) for _, cycles in detail["work"]["cores"]] == [row["latency_cycles"]] * 2
    assert row["limited_by"].partition(" -")[0].partition(" (or")[0] in detail["limits"]["parts"][0][0]
    go(tab, "#run=duo")
    assert {"What limits it", "What the cores do"} <= set(tab.run(HEADINGS))
    assert f"limited by: {detail['limits']['parts'][0][0]} saves" in tab.run(
        "document.querySelector('main').textContent"
    )
    bars = "[...document.querySelectorAll('#core-cycles svg')].map((one) => one.getAttribute('aria-label'))"
    words = tab.run(bars)
    assert len(words) == 2
    assert all("array at work" in told and "nothing to run" in told for told in words)
    tables = "[...document.querySelectorAll('main .wide')].map((one) => one.getAttribute('aria-label'))"
    assert {"cycles of cores by cause", "links", "what cores wait for"} <= set(tab.run(tables))


def test_run_of_several_cores_has_its_schedule(tab: Page) -> None:
    """A run on several cores has its schedule in a frame."""
    go(tab, "#run=duo")
    tab.run(
        "[...document.querySelectorAll('main button')].find((one) => one.textContent === 'show the schedule').click()"
    )
    tab.wait("document.querySelector('iframe')?.contentDocument?.querySelector('#totals')?.textContent")
    assert "duo" in tab.run("document.querySelector('iframe').contentDocument.title")


def beaten_by_none(tab: Page, page: Path) -> list[str]:
    """Return the runs of the front that no other run beats in the two chosen quantities, in table order.

    Equal runs do not beat each other.
    """
    shown, rows = tab.run("[...document.querySelectorAll('tbody tr')].map((one) => one.cells[0].textContent)"), {}
    keys = [tab.run(f"document.querySelector('[data-pick={axis}]').value") for axis in "xy"]
    for run, row in rows_of(data_of(page)).items():
        rows[run] = tuple(row[key] for key in keys)
    points = {run: rows[run] for run in shown}
    return [
        run
        for run, (x, y) in points.items()
        if not any(a <= x and b <= y and (a, b) != (x, y) for a, b in points.values())
    ]


def test_axes_of_the_front_are_chosen(tab: Page, page: Path) -> None:
    """The figure of the front has a point for each run, diamonds for unbeaten runs, and names that do not overlap."""
    go(tab, "#pareto")
    assert tab.run("document.querySelectorAll('.chart svg a').length") == tab.run(
        "document.querySelectorAll('tbody tr').length"
    )
    yes = "[...document.querySelectorAll('tbody tr')].filter((one) => one.cells[3].textContent === 'yes')"
    yes += ".map((one) => one.cells[0].textContent)"
    front = "document.querySelectorAll('.chart svg a > path').length"
    assert tab.run(yes) == beaten_by_none(tab, page)
    assert tab.run(front) == len(tab.run(yes)) >= 1
    put(tab, "document.querySelector('[data-pick=x]')", "energy_pj")
    assert tab.run("document.activeElement.dataset.pick") == "x"
    assert "energy" in tab.run("document.querySelector('.chart svg').getAttribute('aria-label').split(' over ')[1]")
    assert tab.run(yes) == beaten_by_none(tab, page)
    assert tab.run(front) == len(tab.run(yes)) >= 1
    for place in ("#pareto", "#run=two_layers-wide", "#run=two_layers-narrow"):
        go(tab, place)
        for width in (320, 1280, 3840):
            tab.resize(width, 900)
            boxes = tab.run(
                "[...document.querySelectorAll('.chart .label, .chart .tick')].map((one) => {"
                " const b = one.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; })"
            )
            assert len(boxes) > 4
            for number, (left, top, right, bottom) in enumerate(boxes):
                assert 0 <= left < right <= width
                for other in boxes[:number]:
                    assert (
                        left >= other[2] - 1 or other[0] >= right - 1 or top >= other[3] - 5 or other[1] >= bottom - 5
                    )


def test_two_runs_differ_by_what_their_tables_say(tab: Page) -> None:
    """A comparison of two runs has the ratio of their totals, and each choice has its own address."""
    go(tab, "#compare=two_layers-wide&with=two_layers-narrow")
    cells = (
        "[...document.querySelectorAll('tbody tr')].find((one) => one.cells[0].textContent.startsWith('energy')).cells"
    )
    one, other = (float(tab.run(f"{cells}[{place}].textContent").replace(",", "")) for place in (1, 2))
    assert tab.run(f"{cells}[3].textContent") == f"{other / one:.3g} ×"
    put(tab, "document.querySelector('[data-pick=b]')", "nasty")
    tab.wait("location.hash.endsWith('with=nasty')")
    assert tab.run("document.querySelector('[data-pick=b]').value") == "nasty"


def test_keys_are_enough(tab: Page) -> None:
    """Tab and Enter reach the table, its sorting, a run, and a layer of the run."""
    focused = "document.activeElement.textContent"

    def tab_to(text: str) -> None:
        for _ in range(60):
            tab.press("Tab")
            if tab.run(focused).strip().startswith(text):
                return
        raise AssertionError(f"Tab never comes to {text}")

    tab_to("runs")
    tab.press("Tab")
    assert tab.run(focused) == "Pareto"
    tab_to("energy")
    tab.press("Enter")
    assert tab.run("document.activeElement.closest('th').getAttribute('aria-sort')") == "descending"
    tab_to("two_layers-wide")
    tab.press("Enter")
    tab.wait(f"{HEADING} === 'two_layers-wide'")
    assert tab.run("document.activeElement.id") == "main"
    tab_to("+")
    tab.press(" ")
    assert tab.run("document.activeElement.getAttribute('aria-expanded')") == "true"


@pytest.mark.parametrize("width", [320, 768, 1280, 3840])
def test_nothing_is_wider_than_the_window(tab: Page, width: int) -> None:
    """Views are no wider than the window, and each drawing has a description in words."""
    tab.resize(width, 900)
    for place in ("#runs", *map("#run={}".format, ("two_layers-wide", "two_layers-narrow", "duo")), "#pareto", PAIR):
        go(tab, place)
        assert tab.run("document.documentElement.scrollWidth") <= width, place
        silent = "[...document.querySelectorAll('main svg')].filter((one) => one.parentElement.closest('svg') === null"
        silent += " && !one.getAttribute('aria-label') && one.getAttribute('aria-hidden') !== 'true').length"
        assert tab.run(silent) == 0, place


def test_the_page_has_the_name_of_an_html_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A page name without the suffix of HTML is refused before any run is read."""
    assert main(["page", str(tmp_path), "-o", str(tmp_path / "page")]) == 2
    assert "-o: is not the name of an HTML file" in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]
