"""`--paper`: its files, from the command and from Python, and refusals without effect."""

import os
import re
import shutil
from pathlib import Path

import pytest
import tilewright
import yaml
from tilewright.base.errors import InputError
from tilewright.cli.main import main

WITHOUT_FIGURES = (
    (["explain", "RUN"], "-o"),
    (["compare", "RUN", "RUN"], "-o"),
    (["pareto", "RUN"], "--figures or --csv"),
    (["explore", "space.yaml"], "-o"),
    (["summarize", "RUN"], "--csv"),
    (["advise", "RUN"], "-o"),
    (["parse", "workload", "RUN"], "--table"),
    (["front", "space.yaml", "-o", "RUN", "--part", "0"], "a front"),
)
ROOT = Path(__file__).resolve().parents[3]
TINY = ROOT / "tests/workflow/tiny"
NO_PAPER = {"figure_files.py": 1, "paper_tables.py": 1}
"""Modules that write CSV files without a form for a paper, with the number of calls.

These are numbers of a figure, the front of a network, and the CSV file beside a table for a paper.
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run and return its folder."""
    folder = tmp_path_factory.mktemp("runs") / "100%_narrow"
    given = {"hardware": TINY / "hardware/narrow.yaml", "mapping": TINY / "mapping/free.yaml"}
    tilewright.map(**given, workload=TINY / "workload/two_layers.yaml", lpf_limit=3, output=folder)
    return folder


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a space of two designs."""
    folder = tmp_path_factory.mktemp("space")
    for name in ("hardware/wide.yaml", "mapping/free.yaml", "workload/two_layers.yaml"):
        shutil.copy(TINY / name, folder / Path(name).name)
    path = folder / "lanes.yaml"
    axes = {"lanes": {"path": "operational_array.sizes.0", "values": [2, 4]}}
    given = {"accelerator": "wide.yaml", "mapping": "free.yaml", "networks": ["two_layers.yaml"]}
    path.write_text(yaml.safe_dump({**given, "axes": axes, "options": {"lpf_limit": 3}}))
    return path


def test_tables_of_runs(run: Path, tmp_path: Path) -> None:
    """Each verb writes its table as CSV, LaTeX and Markdown, without powers of ten and with escaped names."""
    calls = {
        "summary": ["summarize", str(run), "--csv", str(tmp_path / "summary.csv")],
        "pareto": ["pareto", str(run), "--csv", str(tmp_path / "pareto.csv")],
        "advice": ["advise", str(run), "--no-search", "--no-mapping-changes", "-o", str(tmp_path)],
        "comparison-energy_pj": ["compare", str(run), str(run), "-o", str(tmp_path)],
        "ports": ["explain", str(run), "--only", "tables", "-o", str(tmp_path)],
        "layers": ["report", str(run), "--only", "tables", "-o", str(tmp_path)],
        "work": ["parse", "workload", str(TINY / "workload/two_layers.yaml"), "--table", str(tmp_path / "work.csv")],
    }
    for stem, call in calls.items():
        assert main([*call, "--paper", "column"]) == 0
        latex, text = ((tmp_path / f"{stem}{end}").read_text() for end in ("-column.tex", ".md"))
        assert r"\toprule" in latex
        assert text.startswith("| ")
        assert not re.search(r"\de[+-]\d", latex + text)
    assert r"100\%\_narrow" in (tmp_path / "summary-column.tex").read_text().replace(r"\allowbreak{}", "")
    assert "EDP same mapping gain" in (tmp_path / "advice.md").read_text()


def test_tables_say_their_order_and_what_would_turn_it(run: Path, tmp_path: Path) -> None:
    """Tables of runs are followed by their assumptions, and by the sentences on the order of the best two runs."""
    wide = tmp_path / "wide"
    given = {"hardware": TINY / "hardware/wide.yaml", "mapping": TINY / "mapping/free.yaml"}
    tilewright.map(**given, workload=TINY / "workload/two_layers.yaml", lpf_limit=3, output=wide)
    tilewright.pareto([run, wide], csv=tmp_path / "pareto.csv", paper="column")
    tilewright.summarize([run, wide], csv=tmp_path / "summary.csv", paper="column")
    for stem in ("pareto", "summary"):
        latex, text = ((tmp_path / f"{stem}{end}").read_text() for end in ("-column.tex", ".md"))
        notes = [line for line in text.splitlines() if line and not line.startswith("|")]
        comments = [line for line in latex.splitlines() if line.startswith("% ")]
        assert any("would be first with" in line or "reverses the order" in line for line in notes)
        assert any("would be first with" in line or "reverses the order" in line for line in comments)
        assert "a third run could then be first" in notes[-1] or "best and second" in notes[-1]
        body = [line for line in latex.splitlines() if not line.startswith("%")]
        assert not any("would be first" in line for line in body)


def test_table_of_the_front_of_a_run(tmp_path: Path) -> None:
    """The table of a front has each point with its role, and one unit for all energies."""
    given = {"hardware": TINY / "hardware/narrow.yaml", "mapping": TINY / "mapping/free.yaml"}
    summary = tilewright.map(
        **given, workload=TINY / "workload/two_layers.yaml", front=True, output=tmp_path / "run"
    ).summary
    tilewright.report(tmp_path / "run", output=tmp_path / "paper", only="tables", paper="column")
    text = (tmp_path / "paper/front_points.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text if line.startswith("| ")][1:]
    points = summary["front"]["points"]
    assert len(rows) == len(points)
    assert [float(row[2].replace(",", "")) for row in rows] == [point["latency_cycles"] for point in points]
    assert rows[0][3].startswith("least latency")
    assert "knee" in rows[summary["front"]["knee"]][3]
    assert (tmp_path / "paper/front_points-column.tex").exists()


def test_tables_of_spaces(space: Path, tmp_path: Path) -> None:
    """`explore`, `front` and `decide` write tables for a paper beside their pages and figures."""
    out = tmp_path / "out"
    tilewright.explore(space, out, paper="column")
    assert {"front-column.tex", "front.md", "front-two_layers-column.pdf", "front-two_layers.svg"} <= set(
        os.listdir(out)
    )
    designs, front = ((out / f"{stem}.md").read_text() for stem in ("space", "front"))
    assert "2 rows with a result, in the order of the space." in designs
    assert "on the front in " in front
    assert designs.count("\n| lanes-") == 2
    assert r"\bottomrule" in (out / "space-column.tex").read_text()
    tilewright.decide(out, advice=False, paper="column")
    assert r"lanes-{}" in (out / "decision-table-column.tex").read_text()
    tilewright.front(space, tmp_path / "front", paper="page")
    assert {"front-page.tex", "front-two_layers-page.pdf", "front.html"} <= set(os.listdir(tmp_path / "front"))


def test_files_of_the_other_width_go_only_with_their_numbers(
    space: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second width removes no files; other designs remove outdated files, and a line says so."""
    file, out = tmp_path / "lanes.yaml", tmp_path / "out"
    shutil.copytree(space.parent, tmp_path, dirs_exist_ok=True)
    assert main(["explore", str(file), "-o", str(out), "--paper", "column"]) == 0
    assert main(["explore", str(file), "-o", str(out), "--gather", "--paper", "page"]) == 0
    names = {path.name for path in out.iterdir()}
    assert {f"{name}-{width}.tex" for name in ("space", "front") for width in ("column", "page")} < names
    assert {f"front-two_layers-{width}.pdf" for width in ("column", "page")} < names
    assert "removed" not in capsys.readouterr().err
    file.write_text(file.read_text().replace("- 4", "- 8"))
    assert main(["explore", str(file), "-o", str(out), "--paper", "page"]) == 0
    told = next(
        line for line in capsys.readouterr().err.splitlines() if "an earlier command with other numbers" in line
    )
    assert f"{out / 'space-column.tex'}" in told
    left = {path.name for path in out.iterdir()}
    assert set(names - left) == {name for name in names if "-column." in name or "-column-caption." in name}


def test_every_table_has_a_form_for_a_paper() -> None:
    """Each module writes CSV files by `write_table`, except the listed ones."""
    found = {}
    for path in (ROOT / "lib/tilewright").rglob("*.py"):
        count = len(re.findall(r"(?<!def )\bwrite_csv\(", path.read_text()))
        found |= {path.name: count} if count else {}
    assert found == NO_PAPER


def test_python_writes_and_refuses_what_the_command_does(run: Path, tmp_path: Path) -> None:
    """Python writes and refuses the same as the command: a width without a file, and an unknown width."""
    with pytest.raises(InputError, match="paper: has no effect without `csv`"):
        tilewright.summarize([run], paper="column")
    table = tilewright.pareto([run], csv=tmp_path / "pareto.csv", paper="page")
    assert len(table) == len(tilewright.summarize([run], csv=tmp_path / "summary.csv", paper="page")) == 1
    tilewright.explain(run, output=tmp_path, only="tables", paper="page")
    assert {"pareto-page.tex", "summary-page.tex", "ports-page.tex"} <= set(os.listdir(tmp_path))
    with pytest.raises(InputError, match="allowed: column, page"):
        tilewright.report(run, paper="colum")  # type: ignore[arg-type]


@pytest.mark.parametrize(("given", "needed"), WITHOUT_FIGURES)
def test_no_figures_are_written(given: list[str], needed: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The message about `--paper` without effect names the missing option."""
    folder = str(Path(__file__).parent)
    given = [folder if one == "RUN" else one for one in given]
    assert main([*given, "--paper", "column"]) == 2
    told = capsys.readouterr().err
    assert f"--paper: has no effect without {needed}" in told


def test_draw_says_what_it_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`draw` prints exactly the files that it writes, which have the width in their names."""
    core = Path(__file__).resolve().parents[3] / "config" / "hardware" / "zigzag" / "tpu_like.yaml"
    for width in ("column", "page"):
        out = tmp_path / width
        out.mkdir()
        assert main(["draw", str(core), "-o", str(out / "core.svg"), "--paper", width]) == 0
        told = capsys.readouterr().out.splitlines()
        assert sorted(told) == sorted(map(str, out.iterdir()))
        assert sorted(Path(path).name for path in told) == [
            f"core-{width}{end}" for end in ("-caption.tex", ".csv", ".pdf", ".svg", ".txt")
        ]


def test_an_unknown_width(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown width is refused with the allowed widths and the nearest one."""
    core = Path(__file__).resolve().parents[3] / "config" / "hardware" / "zigzag" / "tpu_like.yaml"
    assert main(["draw", str(core), "-o", str(tmp_path / "a.svg"), "--paper", "colum"]) == 2
    said = capsys.readouterr().err
    assert said == "error: --paper: unknown value, got 'colum' (allowed: column, page) (did you mean 'column'?)\n"
    assert not list(tmp_path.iterdir())
