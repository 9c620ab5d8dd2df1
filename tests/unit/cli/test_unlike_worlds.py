"""Rankings of runs with different clocks: each verb that prints their cycles has a sentence on time."""

import json
from pathlib import Path

import pytest
import tilewright
from tilewright.cli.main import main
from tilewright.cli.run_costs import point_of_run
from tilewright.cli.run_ledgers import ordered

WORKLOAD = [
    {
        "id": 0,
        "operator_type": "Gemm",
        "equation": "O[b][k] += I[b][c] * W[c][k]",
        "loop_dims": ["B", "C", "K"],
        "loop_sizes": [8, 32, 64],
        "operand_precision": {"W": 8, "I": 8, "O": 16, "O_final": 8},
        "operand_source": {"W": 0, "I": 0},
    }
]
MAPPING = "config/mapping/zigzag/tpu_like.yaml"
CLOCKS_MHZ = {"fast": 1000, "slow": 250}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make two runs of one core at two clocks, with different energies of a MAC."""
    folder = tmp_path_factory.mktemp("worlds")
    text = Path("config/hardware/zigzag/tpu_like.yaml").read_text("utf-8")
    for name, mhz in CLOCKS_MHZ.items():
        hardware = folder / f"{name}.yaml"
        own = text.replace("name: tpu_like", f"name: {name}").replace(" 700 MHz", f" {mhz} MHz")
        hardware.write_text(own.replace("unit_energy: 0.04", f"unit_energy: {0.01 * mhz / 250}"), "utf-8")
        options = {"temporal_mapping_search_engine": "loma", "lpf_limit": 2}
        tilewright.map(WORKLOAD, hardware, MAPPING, output=folder / "runs" / name, **options)  # type: ignore[arg-type]
    return folder / "runs"


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[str, str]:
    """Return output and messages of a command, each as one line."""
    assert main([str(one) for one in arguments]) == 0
    printed = capsys.readouterr()
    return " ".join(printed.out.split()), " ".join(printed.err.split())


def sentence(runs: Path) -> str:
    """Return the sentence on the times of both runs: cycles over the clock."""
    cycles = {name: tilewright.load(runs / name / "summary.json")["latency_cycles"] for name in CLOCKS_MHZ}
    times = ", ".join(f"{name} {cycles[name] / mhz / 1e6:.4g} s" for name, mhz in CLOCKS_MHZ.items())
    return f"clocks differ: compare by time, not by cycles: {times}"


def test_every_ranking_says_that_clocks_differ(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each ranking says that clocks differ: in its text, its message, its file or its page."""
    text, mac = sentence(runs), "the energy of a MAC differs: fast: 0.04 pJ; slow: 0.01 pJ"
    for arguments in (("summarize", runs), ("pareto", runs), ("compare", runs / "fast", runs / "slow")):
        out, _ = said(capsys, *arguments)
        assert text in out
        assert mac in out
    assert "[s]" in said(capsys, "pareto", runs)[0]
    assert text in said(capsys, "summarize", runs, "--csv", tmp_path / "runs.csv")[1]
    assert text in said(capsys, "summarize", runs, "--json")[1]
    said(capsys, "pareto", runs, "--csv", tmp_path / "pareto.csv")
    assert (tmp_path / "pareto.csv").read_text("utf-8").count(text) == len(CLOCKS_MHZ)
    said(capsys, "page", runs, "-o", tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text("utf-8").count(text) == 2


def test_every_ranking_names_what_turns_the_order(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each ranking has the sentences of `pareto` on reversing the order, in the table of runs and in the page."""
    groups = ordered([point_of_run(runs / name) for name in CLOCKS_MHZ], [runs / name for name in CLOCKS_MHZ])
    lines = [" ".join(line.split()) for group in groups for line in group.order_lines]
    assert len(lines) == 4
    assert sum("B would be first with" in line for line in lines) >= 2
    for verb in ("pareto", "summarize"):
        out, _ = said(capsys, verb, runs)
        assert all(line in out for line in lines), verb
    assert "best and second" not in said(capsys, "summarize", runs / "fast")[0]
    said(capsys, "page", runs, "-o", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    assert [group["turns"] for group in data["groups"]] == [list(group.order_lines) for group in groups]


def test_a_changed_clock_of_the_table_turns_the_order(runs: Path, tmp_path: Path) -> None:
    """A clock changed by the printed factor reverses the order of two runs; 0.9 of the change does not."""
    (group,) = ordered([point_of_run(runs / name) for name in CLOCKS_MHZ], [runs / name for name in CLOCKS_MHZ])
    line = next(line for line in group.order_lines if ": latency in seconds" in line)
    factor = float(line.partition("at least ")[2].partition(" times the clock of B")[0])
    text = Path("config/hardware/zigzag/tpu_like.yaml").read_text("utf-8")
    fast_s = tilewright.load(runs / "fast" / "summary.json")["latency_s"]
    for share, turns in ((1.0, True), (0.9, False)):
        hardware = tmp_path / f"{share}.yaml"
        mhz = CLOCKS_MHZ["slow"] * (1 + (factor - 1) * share)
        hardware.write_text(text.replace("700 MHz", f"{mhz!r} MHz"), "utf-8")
        output = tmp_path / str(share)
        options = {"temporal_mapping_search_engine": "loma", "lpf_limit": 2}
        tilewright.map(WORKLOAD, hardware, MAPPING, output=output, **options)  # type: ignore[arg-type]
        assert (tilewright.load(output / "summary.json")["latency_s"] < fast_s) == turns


def test_compare_names_a_clock_that_turns_the_latency(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`compare` names a clock that reverses the latency: four times the slower clock makes equal runs equally fast."""
    out, _ = said(capsys, "compare", runs / "fast", runs / "slow")
    assert "B would be first with at least 4.01 times the clock of B (250 -> 1010 MHz)" in out
    assert "energy: A is" in out
    assert "at least 4.01 times the energy of a MAC in B (0.01 -> 0.0401 pJ)" in out
    found = tilewright.compare(runs / "fast", runs / "slow")
    assert found["assumes"].str.contains("are for unchanged mappings").all()
