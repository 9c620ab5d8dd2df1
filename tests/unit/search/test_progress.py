"""Progress: the estimate of the remaining time ignores the time spent before the work began."""

import contextlib
import importlib
import io
from pathlib import Path

import pytest
from tilewright.cli.main import main
from tilewright.search import progress
from tilewright.search.progress import TimeLeft, search_progress


def test_the_first_part_says_nothing_of_the_others() -> None:
    """The first of 14 parts takes 14 seconds, for reading and compiling; the remaining time counts 0.5 seconds
    a part.
    """
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
    """No remaining time is given before a tenth is done."""
    left = TimeLeft(100)
    for part in range(1, 10):
        left.advance(1, float(part))
        assert left.seconds is None
    left.advance(1, 10.0)
    assert left.seconds == pytest.approx(90)


@pytest.mark.parametrize("bar", ["tilewright.search.progress", "tilewright.multicore.allocation.progress"])
def test_names_in_a_bar_are_text(bar: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Markup and control characters in a bar's title are shown as text."""
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
    """A search with bounds shows how many layers are done, because the number of orders is not known before."""
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
    """A first run says that it compiles, also for a short search; later runs and runs without progress do not."""
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
