"""Tables of fronts for a paper: the rows that the terminal shows."""

import random
from pathlib import Path

import pandas
from tilewright.designs.answer import answer_of
from tilewright.designs.effects import marked_designs
from tilewright.designs.front import spread
from tilewright.designs.table_files import write_front_tables
from tilewright.designs.tables import MOST_ROWS, answer_text
from tilewright.results.sheet import drawn_for

from tests.unit.designs.conftest import exploration


def test_named_designs_have_a_row() -> None:
    """The sample of a front contains all named designs and both ends, and keeps its size and order."""
    members = pandas.DataFrame({"design": [f"d-{place}" for place in range(31)]})
    draw = random.Random(1)
    for _ in range(50):
        named = draw.sample(members["design"].tolist(), draw.randint(0, 6))
        found = spread(members, 8, [*named, "of another front"])
        assert {*named, "d-0", "d-30"} <= {*found["design"]}
        assert found.index.tolist() == sorted({*found.index})
        assert len(found) == 8


def test_a_paper_has_the_rows_of_the_terminal(tmp_path: Path) -> None:
    """The table of a paper has at most MOST_ROWS rows of each front, at equal steps along it.
    A note says so, also in the printed table, and the CSV file has all rows.
    """
    count = 3 * MOST_ROWS + 1
    rows = [
        {"energy_pj": 1e6 + 1e4 * place, "latency_cycles": 1e6 - 1e3 * place, "area_mm2": 1.0}
        for place in range(count)
        for _ in range(2)
    ]
    answer = answer_of(exploration(rows, networks=("one", "two")))
    with drawn_for("column"):
        write_front_tables(answer, tmp_path)
    for front in answer.fronts:
        assert len(front.members) == count
        name = front.network.replace(" ", "_")
        lines = (tmp_path / f"front-{name}.md").read_text().splitlines()
        found = [line.split("|")[1].strip() for line in lines if line.startswith("| design-")]
        assert found == spread(front.members, MOST_ROWS, [*marked_designs(front)])["design"].tolist()
        note = (
            f"{count} designs on the front in energy, latency, area, of which {MOST_ROWS} have a row: the"
            " best designs, and others at equal steps along it"
        )
        assert any(note in line for line in lines)
        latex = (tmp_path / f"front-{name}-column.tex").read_text().replace(r"\allowbreak{}", "")
        printed = [line for line in latex.splitlines() if not line.startswith("%")]
        assert any(f"{front.network}: {MOST_ROWS} of {count} designs on the front." in line for line in printed)
    told = answer_text(answer)
    assert all(name in told for name in marked_designs(answer.overall))
    assert sum(line.startswith("| ") for line in (tmp_path / "front.md").read_text().splitlines()) == 3 * MOST_ROWS + 1
    assert len(pandas.read_csv(tmp_path / "front.csv")) == 3 * count


def test_a_paper_has_the_warnings_of_the_terminal(tmp_path: Path) -> None:
    """The table of a paper has the warnings of the terminal and a column with the longest access.
    Without slow or extrapolated memories it has neither.
    """
    slow = {"access_ns": 2.5, "access_cycles": 2.5, "slow_memories": "sram", "extrapolated_memories": "sram"}
    fast = {"access_ns": 0.5, "access_cycles": 0.5, "slow_memories": "", "extrapolated_memories": ""}
    for second in (slow, fast):
        rows = [
            {"energy_pj": 1e6, "latency_cycles": 2e6, "area_mm2": 1.0, **fast},
            {"energy_pj": 2e6, "latency_cycles": 1e6, "area_mm2": 1.0, **second},
        ]
        answer, is_slow = answer_of(exploration(rows)), second is slow
        assert len(answer.warnings) == 2 * is_slow
        assert all(one in answer_text(answer).splitlines() for one in answer.warnings)
        with drawn_for("column"):
            write_front_tables(answer, tmp_path)
        page, latex = (tmp_path / f"front{end}" for end in (".md", "-column.tex"))
        for text in (page.read_text(), latex.read_text()):
            assert ("Latencies are valid only if these memories are pipelined" in text) == is_slow
            assert ("are extrapolated" in text) == is_slow
        heads = page.read_text().splitlines()[0]
        assert ("| access " in heads) == is_slow
