"""The progress that a search over allocations prints."""

import pytest
from tilewright.multicore.allocation import progress
from tilewright.multicore.allocation.result import Evaluation, SearchProgress

BEST = Evaluation((0,), 1200, 3.5e6)


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (SearchProgress(0, 10, None, 0.0), "0 of at most 10 allocations, no schedule yet, 0 s left"),
        (
            SearchProgress(4, 10, BEST, 2.0),
            "4 of at most 10 allocations, best 1,200 cycles, 3.5 µJ, 3 s left",
        ),
    ],
)
def test_the_state_on_one_line(state: SearchProgress, text: str) -> None:
    """The line has the evaluations, the best result so far and the remaining time at the present speed."""
    assert progress.progress_text(state) == text


def test_a_log_gets_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A log gets a line at intervals, not for each evaluation. Where progress is not shown, it gets none."""
    monkeypatch.setattr(progress, "LOG_INTERVAL_S", 0.0)
    with progress.allocation_progress("net on cores", shown=True) as tell:
        tell(SearchProgress(4, 10, BEST, 2.0))
    assert capsys.readouterr().err.startswith("net on cores: 4 of at most 10 allocations, best 1,200 cycles")
    monkeypatch.setattr(progress, "LOG_INTERVAL_S", 1000.0)
    with progress.allocation_progress("net on cores", shown=True) as tell:
        tell(SearchProgress(5, 10, BEST, 2.0))
    with progress.allocation_progress("net on cores", shown=False) as tell:
        tell(SearchProgress(6, 10, BEST, 2.0))
    assert capsys.readouterr().err == ""


def test_a_terminal_gets_a_bar_when_the_search_takes_longer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A terminal gets a bar after one second, with the count and the best result so far."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress.allocation_progress("net on cores", shown=True) as tell:
        tell(SearchProgress(1, 10, BEST, 0.1))
        assert capsys.readouterr().err == ""
        tell(SearchProgress(10, 10, BEST, 2.0))
    said = capsys.readouterr().err
    assert "10/10" in said
    assert "best 1,200 cycles" in said
