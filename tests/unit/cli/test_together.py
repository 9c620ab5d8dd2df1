"""Units that jobs of the pipeline make, and their manifests."""

from contextlib import nullcontext
from pathlib import Path

import pytest
from tilewright.base.artifacts.manifest import Job, Order, ResultsLedger, Unit, manifest_file, read_order
from tilewright.base.errors import InputError
from tilewright.cli.together import make, make_unit

NEEDS = {"first": (), "second": ("first",)}


@pytest.fixture
def order(tmp_path: Path) -> Order:
    """Return the order of a unit of one file."""
    unit = Unit("unit", ("file.txt",), {}, job=Job(("verb", "--option", "1"), str(tmp_path / "unit.log")))
    return read_order(ResultsLedger(tmp_path, {"unit": unit}).order("unit"))


def written(order: Order, words: list[str]) -> int:
    """Write the file of the unit like a verb."""
    (order.results / "file.txt").write_text(" ".join(words))
    return 0


def test_further_words_of_a_rule_are_taken(order: Order) -> None:
    """A rule may add words to the order that do not change the result."""
    assert make_unit(order, (*order.job.words, "--jobs", "2"), lambda words: written(order, words)) == 0
    assert manifest_file(order.results, "unit").exists()


def test_words_of_another_plan_are_refused(order: Order) -> None:
    """A job whose command line differs from its order is refused, because the configuration has changed."""
    with pytest.raises(InputError, match="a configuration that has changed since this run began"):
        make_unit(order, ("verb", "--option", "2"), lambda words: written(order, words))
    assert not manifest_file(order.results, "unit").exists()


def test_a_unit_without_its_file_fails_alone(order: Order) -> None:
    """A unit without its file fails, and the message is in its log."""
    assert make(order, order.job.words, lambda words: 0) == 2
    assert "was not made" in Path(order.job.log).read_text()


def test_what_is_read_before_it_is_made_is_refused(tmp_path: Path) -> None:
    """A unit that reads another unit without an up-to-date result is refused."""
    units = {name: Unit(name, (f"{name}.txt",), {"word": lambda: "1"}, needs) for name, needs in NEEDS.items()}
    before = {"first": Unit("first", ("first.txt",), {"word": lambda: "0"})}
    order = ResultsLedger(tmp_path, units).order("second")
    with pytest.raises(InputError, match="first has no up-to-date result"):
        make_unit(read_order(order), ("verb",), lambda words: 0)
    for made, refusal in ((before, pytest.raises(InputError, match="no up-to-date result")), (units, nullcontext())):
        (tmp_path / "first.txt").write_text("made")
        (tmp_path / "second.txt").write_text("made")
        read_order(ResultsLedger(tmp_path, made).order("first")).record()
        with refusal:
            make_unit(read_order(order), ("verb",), lambda words: 0)
