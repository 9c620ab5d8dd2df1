"""Islands of a search of plans: parts made anywhere and in any order give the search of one process."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import tilewright
from tilewright.base.errors import InputError
from tilewright.cli.main import main
from tilewright.pipeline.configuration.island_parts import ANSWER, OPENING, parts_before, state_parts
from tilewright.plans.budget import SearchBudget
from tilewright.plans.call import fused as fused_plan
from tilewright.plans.evaluate import PlanOutcome
from tilewright.results.multi.search_end import search_end

from tests.unit.cli.multi_core import HARDWARE, write_network
from tests.unit.plans.cases import SHORT, fused, options, system_problem

ISLANDS: dict[str, Any] = {"islands": 3, "island_rounds": 2, "nb_plans": 110, "objective": "EDP"}
FILES = ("fusion.json", "fusion.csv", "fusion.html", "mapping.yaml", "schedule.npz", "summary.json")


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network of three convolutions, one after the other."""
    return write_network(tmp_path_factory.mktemp("network"))


def words(network: Path, output: Path, **changed: Any) -> list[str]:
    """The command line of a search with islands."""
    settings = {**SHORT, **ISLANDS, **changed}
    values = [word for name, value in settings.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    return ["fuse", "--hardware", HARDWARE, "--workload", str(network), *values, "-o", str(output)]


def in_some_order(draw: random.Random) -> list[str]:
    """The parts in a random order in which each part follows the parts it reads."""
    sizes = ISLANDS["islands"], ISLANDS["island_rounds"]
    left, made = [*state_parts(*sizes), ANSWER], list[str]()
    while left:
        made.append(draw.choice([part for part in left if set(parts_before(part, *sizes)) <= set(made)]))
        left.remove(made[-1])
    return made


def make(parts: Sequence[str], network: Path, folder: Path) -> None:
    """Make the parts, as jobs of a cluster do."""
    for part in parts:
        assert main([*words(network, folder), "--part", part]) == 0


@pytest.mark.slow
def test_parts_in_any_order_make_the_bytes_of_one_process(network: Path, tmp_path: Path) -> None:
    """The verb in one process, its parts, a lost part made again, and Python all write the same bytes."""
    assert main(words(network, tmp_path / "one")) == 0
    parts = in_some_order(random.Random(3))
    make(parts, network, tmp_path / "parts")
    lost = tmp_path / "parts/islands/2.1.json"
    kept = lost.read_bytes()
    lost.unlink()
    stale = tmp_path / "parts/islands/7.9.json"
    stale.write_text("of a search with more islands")
    assert main([*words(network, tmp_path / "parts"), "--part", ANSWER]) == 2
    make(["2.1", ANSWER], network, tmp_path / "parts")
    assert lost.read_bytes() == kept
    assert not stale.exists()
    tilewright.fuse(network, HARDWARE, **{**SHORT, **ISLANDS}, output=tmp_path / "python")
    for name in FILES:
        one = (tmp_path / "one" / name).read_bytes()
        assert one == (tmp_path / "parts" / name).read_bytes(), name
        assert one == (tmp_path / "python" / name).read_bytes(), name


def test_the_record_is_that_of_all_islands(network: Path) -> None:
    """The record has each plan of all islands once, in order, and the shares add up to the limit."""
    found = fused(network, **ISLANDS)
    tried = found.found.tried
    assert [one.number for one in tried] == list(range(len(tried)))
    best: tuple[float, ...] | None = None
    for one in tried:
        rank = None if one.figures is None else one.figures.rank("EDP")
        assert one.is_best == (rank is not None and (best is None or rank < best))
        best = rank if one.is_best else best
    assert found.best.figures is not None
    assert best == found.best.figures.rank("EDP")
    evaluated = len(tried) + found.found.segments
    assert ISLANDS["nb_plans"] <= evaluated <= ISLANDS["nb_plans"] + ISLANDS["islands"] * ISLANDS["island_rounds"]
    assert search_end(found.document["search"]).partition(";")[0].endswith("(nb_plans), shared by 3 islands")


def test_islands_have_seeds_of_their_own(network: Path) -> None:
    """The plans of islands differ with the seed, so one search in rounds is not several equal searches."""
    alike = fused(network, **{**ISLANDS, "islands": 2, "seed": 1}).found.tried
    other = fused(network, **{**ISLANDS, "islands": 2, "seed": 2}).found.tried
    assert [one.figures for one in alike] != [one.figures for one in other]


def test_schedules_are_shared(network: Path) -> None:
    """Each round exceeds its share of schedules by its last plan only."""
    found = fused(network, **{**ISLANDS, "nb_plans": 4000, "nb_schedules": 700})
    assert found.found.stopped_by == "schedules"
    most = max(one.evaluations for one in found.found.tried)
    assert 700 <= found.found.evaluations < 700 + most * ISLANDS["islands"] * ISLANDS["island_rounds"]


@pytest.mark.slow
def test_ctrl_c_keeps_the_best_of_all_islands(network: Path) -> None:
    """Ctrl-C keeps the best plan of all islands, also from the round that it ends."""
    for count in (60, 75, 100):

        def stop(done: int, planned: int, best: PlanOutcome | None, elapsed_s: float, count: int = count) -> None:
            if done >= count:
                raise KeyboardInterrupt

        found = fused_plan(system_problem(network), options(**ISLANDS), progress=stop)
        assert found.is_interrupted
        assert len(found.found.tried) + found.found.segments == count
        figures = [one.figures.rank("EDP") for one in found.found.tried if one.figures]
        assert found.best.figures is not None
        assert found.best.figures.rank("EDP") == min(figures)


def test_parts_of_a_budget_are_the_budget() -> None:
    """The parts of a budget differ by at most 1 and add up to the whole."""
    for left, count in ((0, 4), (3, 4), (100, 7), (101, 8)):
        budget = SearchBudget(left + 5, most_schedules=2 * left + 1, plans=5, schedules=1)
        parts = [budget.part(number, count) for number in range(count)]
        assert sum(part.most_plans for part in parts) == left
        assert max(part.most_plans for part in parts) - min(part.most_plans for part in parts) <= 1
        assert sum(part.most_schedules or 0 for part in parts) == 2 * left


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["--part", "3.1"],
            "--part: no such part, got 3.1 (allowed: opening, answer, or ROUND.ISLAND from 1.1 to 2.3)",
        ),
        (["--part", "opening", "--islands", "1"], "--part: a search with one island cannot be made in parts"),
        (
            ["--part", "1.1", "--fusion-cpu-budget-s", "9"],
            "--fusion-cpu-budget-s: cannot limit a search with --part, because such a search takes several calls; use",
        ),
        (["--islands", "0"], "--islands: not a count, got 0"),
        (["--part", "2.2"], "islands/1.1.json"),
    ],
)
def test_wrong_parts(
    arguments: list[str], told: str, network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wrong parts exit with 2 and a message, which names each missing state."""
    assert main([*words(network, tmp_path), *arguments]) == 2
    said = capsys.readouterr().err
    assert told in said
    if arguments[-1] == "2.2":
        assert "islands/1.2.json" in said
        assert f"islands/{OPENING}.json" in said


def test_states_of_another_search_are_refused(
    network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """States of a search with another seed are refused."""
    assert main([*words(network, tmp_path), "--part", OPENING]) == 0
    assert main([*words(network, tmp_path, seed=4), "--part", "1.1"]) == 2
    assert "opening.json is the state of another search, with different options" in capsys.readouterr().err
    with pytest.raises(InputError, match="one island"):
        tilewright.fuse(network, HARDWARE, **SHORT, part=OPENING, output=tmp_path)
