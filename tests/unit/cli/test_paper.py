"""`--paper`: where it has no effect, it is refused, and no file is written."""

from pathlib import Path

import pytest
from tilewright.cli.main import main

WITHOUT_FIGURES = (
    (["explain", "RUN"], "-o"),
    (["compare", "RUN", "RUN"], "-o"),
    (["pareto", "RUN"], "--figures or --csv"),
    (["explore", "space.yaml"], "-o"),
)


@pytest.mark.parametrize(("given", "needed"), WITHOUT_FIGURES)
def test_no_figures_are_written(given: list[str], needed: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The message names the option that is missing."""
    folder = str(Path(__file__).parent)
    given = [folder if one == "RUN" else one for one in given]
    assert main([*given, "--paper", "column"]) == 2
    told = capsys.readouterr().err
    assert f"--paper: has no effect without {needed}" in told


def test_an_unknown_width(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the widths that there are, and the nearest."""
    core = Path(__file__).resolve().parents[3] / "config" / "hardware" / "zigzag" / "tpu_like.yaml"
    assert main(["draw", str(core), "-o", str(tmp_path / "a.svg"), "--paper", "colum"]) == 2
    assert "allowed: column, page) (did you mean 'column'?)" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
