"""Start-up of verbs: a verb that prints numbers of a run imports no library for tables, figures or pages."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TINY = Path(__file__).resolve().parents[2] / "workflow" / "tiny"
ONE_CORE = (
    *("--hardware", str(TINY / "hardware" / "wide.yaml")),
    *("--workload", str(TINY / "workload" / "two_layers.yaml")),
    *("--mapping", str(TINY / "mapping" / "free.yaml")),
    *("--preset", "zigzag", "--no-store"),
)
HEAVY = ("pandas", "pyarrow", "matplotlib", "plotly", "scipy", "networkx", "jsonschema", "snakemake")
"""Libraries whose import takes 50 ms to 0.5 s and tens of MB."""
CALL = (
    "import sys; from tilewright.cli.main import main; code = main(sys.argv[1:]);"
    f"print('loaded', code, *(name for name in {HEAVY!r} if name in sys.modules))"
)


def loaded(*arguments: str) -> str:
    """Return the last line of a process that calls a verb: exit code and imported libraries of HEAVY."""
    environment = {**os.environ, "PYTHONPATH": "lib"}
    called = subprocess.run(
        [sys.executable, "-c", CALL, *arguments], capture_output=True, text=True, check=True, env=environment
    )
    return called.stdout.splitlines()[-1]


@pytest.mark.parametrize("output", [(), ("-o",)], ids=["printed", "written"])
def test_map_and_check_start_without_tables(tmp_path: Path, output: tuple[str, ...]) -> None:
    """`map` and `check` import no heavy library; error bars once cost 0.4 s and 80 MB in each call."""
    folder = tmp_path / "run"
    written = (*output, str(folder)) if output else ()
    assert loaded("map", *ONE_CORE, *written) == "loaded 0"
    if output:
        assert loaded("check", str(folder)) == "loaded 0"


@pytest.mark.parametrize("verb", ["validate", "new"])
def test_verbs_of_files_start_without_tables(tmp_path: Path, verb: str) -> None:
    """Verbs that read or write descriptions import no heavy library."""
    arguments = {
        "validate": (str(TINY / "hardware" / "wide.yaml"),),
        "new": (str(tmp_path / "mine"), "--like", "eyeriss", "--array", "16x16"),
    }
    assert loaded(verb, *arguments[verb]) == "loaded 0"


def test_tables_are_imported_where_they_are_written(tmp_path: Path) -> None:
    """`explain` imports pandas, so the list of heavy libraries is effective."""
    folder = tmp_path / "run"
    loaded("map", *ONE_CORE, "-o", str(folder))
    assert "pandas" in loaded("explain", str(folder)).split()
