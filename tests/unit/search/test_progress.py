"""Progress: the time that is left is that of the work, not that of what comes before its first part."""

import contextlib
import importlib
import io
from pathlib import Path

import pytest
from tilewright.cli.main import main
from tilewright.search import progress
from tilewright.search.progress import TimeLeft, search_progress


def test_the_first_part_says_nothing_of_the_others() -> None:
    """It takes 14 seconds, for all is read and compiled in it; each of the 13 others takes 0.5 seconds."""
    left = TimeLeft(56)
    assert left.seconds is None
    left.advance(4, 14.0)
    assert left.seconds is None
    left.advance(4, 14.5)
    assert left.seconds == pytest.approx(6.0)
    for part in range(12):
        left.advance(4, 15.0 + part / 2)
    assert left.seconds == 0


def test_nothing_is_told_of_little() -> None:
    """Not before a tenth is done."""
    left = TimeLeft(100)
    for part in range(1, 10):
        left.advance(1, float(part))
        assert left.seconds is None
    left.advance(1, 10.0)
    assert left.seconds == pytest.approx(90)


@pytest.mark.parametrize("bar", ["tilewright.search.progress", "tilewright.multicore.allocation.progress"])
def test_names_in_a_bar_are_text(bar: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What looks like markup or controls a terminal is shown as it is written."""
    said = io.StringIO()
    monkeypatch.setattr("sys.stderr", said)
    started = importlib.import_module(bar)._started_bar
    with contextlib.ExitStack() as stack:
        title = "[red]a\x1b]0;b\nc"
        started(None, title, stack, "orders") if bar.startswith("tilewright.search") else started(title, stack)
    assert "[red]a\\x1b]0;b\\nc" in said.getvalue()


def test_a_search_with_bounds_shows_its_layers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The number of its orders is not known before; layers are, and so is how many of them are done."""
    monkeypatch.setattr("tilewright.search.progress.LOG_INTERVAL_S", 0.0)
    tiny = Path("tests/workflow/tiny").resolve()
    files = ["--workload", str(tiny / "workload/two_layers.yaml"), "--hardware", str(tiny / "hardware/narrow.yaml")]
    assert main(["map", *files, "--mapping", str(tiny / "mapping/free.yaml"), "--no-store"]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("two_layers on narrow: ")]
    done = [int(line.split(": ")[1].split(" of 2 layers")[0]) for line in lines]
    assert done == sorted(done)
    assert done[-1] == 2
    assert "2 of 2 layers (100%)" in lines[-1]


def test_a_first_run_says_that_it_compiles(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before any kernel is kept, also for a short search; not if nothing is shown, and not in later runs."""
    folder = tmp_path / "kernels"
    monkeypatch.setattr(progress, "cache_directory", lambda: folder)
    with search_progress(1, "net", shown=False):
        pass
    assert capsys.readouterr().err == ""
    with search_progress(1, "net", shown=True):
        pass
    assert capsys.readouterr().err.startswith("compiling the numeric functions of this version")
    folder.mkdir()
    (folder / "cost_block-1.o").write_bytes(b"")
    with search_progress(1, "net", shown=True):
        pass
    assert capsys.readouterr().err == ""
    assert "every run compiles them again" in progress.compilation_text(None)
