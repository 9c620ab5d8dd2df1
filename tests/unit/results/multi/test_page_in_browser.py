"""The interactive schedule in a real browser: search, causes, rows of memories, keys and sizes, without any error."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tilewright.results.multi.page import schedule_page

from tests.chromium import Page, chromium, find_chromium
from tests.unit.results.multi.schedule_cases import every_category

WHY, FIND = "document.getElementById('why')", "document.getElementById('find')."


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    """A browser; tests are skipped if none is installed."""
    program = find_chromium()
    if program is None:
        pytest.skip("needs Chromium, of which none is installed")
    with chromium(program) as tab:
        yield tab


@pytest.fixture
def tab(browser: Page, tmp_path: Path) -> Iterator[Page]:
    """The page of `every_category` as it opens. Afterwards the browser must have reported no error."""
    page = tmp_path / "schedule.html"
    page.write_text(schedule_page(every_category()), "utf-8")
    browser.open("about:blank", "true")
    browser.complaints.clear()
    browser.resize(1280, 900)
    browser.open(page.as_uri(), "globalThis.viewer")
    browser.settle()
    yield browser
    assert browser.complaints == []


def search(tab: Page, text: str) -> str:
    """The text beside the search field after a search."""
    given = json.dumps(text)
    tab.run(f"find.value = {given}, find.dispatchEvent(new Event('change'))".replace("find.", FIND))
    return str(tab.run("document.getElementById('found').textContent"))


def test_a_search_says_what_it_found(tab: Page) -> None:
    """A search selects its hit and names it; a search without a hit says so and keeps the selection."""
    assert search(tab, "1.0") == "CN 1.0 of /layer1/conv/Conv"
    selected = tab.run("viewer.selected")
    assert selected >= 0
    assert search(tab, "nowhere").startswith("nothing found: no layer has “nowhere” in its name")
    assert tab.run("viewer.selected") == selected
    assert search(tab, "") == ""


def test_a_node_says_why_it_began(tab: Page) -> None:
    """The steps of a reason lead back to cycle 0, each step leads to its bar, and Escape closes the list."""
    assert tab.run(f"{WHY}.textContent") == ""
    search(tab, "3.0")
    steps = f"[...{WHY}.querySelectorAll('li')].map((one) => one.textContent)"
    told = tab.run(steps)
    assert told[0] == "CN 3.0 at 37; data: CN 2.0 had made its data"
    assert told[-1].endswith("at 0; at the beginning")
    tab.run(f"{WHY}.querySelectorAll('li button')[1].click()")
    tab.settle()
    assert tab.run(steps) == told[1:]
    assert tab.run(f"{WHY}.querySelector('h2').textContent") == "Why it began at 27"
    tab.press("Escape")
    assert tab.run(f"{WHY}.textContent") == ""


def test_the_last_bar_has_the_chain_of_the_latency(tab: Page) -> None:
    """The key and the button show the chain of the last bar, whose parts add up to the start of this bar."""
    tab.press("c")
    tab.settle()
    by_key = tab.run(f"{WHY}.textContent")
    assert by_key.startswith("Why it began at 42")
    cycles = tab.run(f"[...{WHY}.querySelectorAll('tr')].map((row) => parseInt(row.cells[1].textContent))")
    assert sum(cycles) == 42
    tab.press("Escape")
    tab.run("document.getElementById('last').click()")
    assert tab.run(f"{WHY}.textContent") == by_key


def test_rows_of_memories_tell_what_they_hold(tab: Page) -> None:
    """The row of a memory shows its contents at the cursor; its bar still shows its own text."""
    place = tab.run("viewer.rows.findIndex((row) => row.kind === 'memory')")
    assert tab.run("viewer.rows.slice(0, -2).every((row) => row.kind !== 'memory')")
    tab.run(
        "(() => { const box = viewer.canvas.getBoundingClientRect(), x = viewer.xOf(20.5);"
        f" const y = AXIS_HEIGHT + viewer.rowTop[{place}] + 10;"
        " const at = { clientX: box.left + x, clientY: box.top + y };"
        " viewer.canvas.dispatchEvent(new PointerEvent('pointermove', at)); })()"
    )
    told = tab.run("document.getElementById('tip').textContent")
    assert told.startswith("memory 0")
    assert "cycle20" in told
    assert "of 110 bits" in told


@pytest.mark.parametrize(("width", "height"), [(320, 640), (1280, 900), (3840, 2160)])
def test_the_page_uses_its_room(tab: Page, width: int, height: int) -> None:
    """The rows share the height of the chart up to their limit, and nothing is wider than the window."""
    tab.resize(width, height)
    tab.run("globalThis.dispatchEvent(new Event('resize'))")
    tab.settle()
    assert tab.run("document.documentElement.scrollWidth") <= width
    used, there, stretch = tab.run("[viewer.total + AXIS_HEIGHT, viewer.scroll.clientHeight, viewer.stretch]")
    assert there > height / 4
    panel = tab.run("document.querySelector('aside').getBoundingClientRect().height")
    assert panel > height / 4
    assert used >= there - 1 or stretch == 8
