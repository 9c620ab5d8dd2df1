"""`tilewright translate`, and scripts that cannot be translated."""

import json
from pathlib import Path

import pytest
import tilewright
import yaml
from tilewright.cli.main import main

from tests.unit.main_stage.conftest import files

SCRIPT = """
from tilewright.main_stage import *

class Mine(Stage):
    def run(self):
        yield from self.list_of_callables[0](self.list_of_callables[1:], **self.kwargs).run()

MainStage(
    [WorkloadParserStage, AcceleratorParserStage, {stages}],
    accelerator={accelerator!r}, workload={workload!r}, mapping={mapping!r}, {keywords}
).run()
raise SystemExit("the stages were not run")
"""
DEFAULT = "MinimalLatencyStage, SpatialMappingGeneratorStage, MinimalLatencyStage, LomaStage, CostModelStage"


def write(stages: str, keywords: str = "") -> Path:
    """Write a script."""
    path = Path("script.py")
    path.write_text(SCRIPT.format(stages=stages, keywords=keywords, **files()))
    return path


def test_options_in_place_of_a_pipeline() -> None:
    """Stages of the default pipeline become options; other stages become a pipeline."""
    told = tilewright.translate(write(f"SumStage, WorkloadStage, {DEFAULT}", "loma_lpf_limit=5"))
    assert (told.pipeline, told.options) == (None, {"preset": "zigzag", "lpf_limit": 5})
    energy = DEFAULT.replace("Latency", "Energy").replace("Loma", "Salsa")
    told = tilewright.translate(write(f"WorkloadStage, {energy}", "salsa_iteration_number=50"))
    expected = {"preset": "zigzag", "objective": "energy", "temporal_mapping_search_engine": "salsa"}
    expected |= {"salsa_iteration_number": 50}
    assert told.options == expected
    told = tilewright.translate(
        write(f"SimpleSaveStage, SumStage, WorkloadStage, CompleteSaveStage, {DEFAULT}", "dump_folder='out/x'")
    )
    assert told.pipeline == [{"insert": "SimpleSave", "before": "Sum"}, {"insert": "CompleteSave", "after": "Workload"}]
    assert told.output == "out/x"
    assert yaml.safe_load(told.configuration())["runs"]


def test_the_command_says_it(capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints the translation as text and as JSON, and names a user's stage with its place."""
    script = write(f"WorkloadStage, Mine, {DEFAULT}", "loma_show_progress_bar=True")
    assert main(["translate", str(script)]) == 0
    said = capsys.readouterr().out
    assert "tilewright map --hardware" in said
    assert "script.py:5 Mine: this stage is written for a script, so a pipeline of tilewright cannot use it" in said
    assert "loma_show_progress_bar has a counterpart in tilewright: long searches show" in said
    assert main(["translate", str(script), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["remarks"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\n", "ended, but it never called run() of a MainStage"),
        ("import nothing_of_this_name\n", "script.py:1"),
        ("x = (\n", "SyntaxError"),
        ("import sys\nsys.exit(3)\n", "exit code 3"),
        ("from zigzag.stages.main import MainStages\n", "MainStages"),
    ],
)
def test_scripts_that_do_not_get_there(text: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A script that does not reach MainStage is an error with its place and exit code 2."""
    Path("script.py").write_text(text)
    assert main(["translate", "script.py"]) == 2
    assert said in capsys.readouterr().err


def test_wrong_stages_and_keywords_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong stage of a script, a wrong keyword of a script and a missing script are user errors."""
    assert main(["translate", str(write(f"SumStages, {DEFAULT}"))]) == 2
    said = capsys.readouterr().err
    assert "script.py:9" in said
    assert "SumStages" in said
    script = write(f"SumStage, {DEFAULT}", "loma_lpf_limits=5")
    assert main(["translate", str(script)]) == 2
    assert "did you mean 'loma_lpf_limit'" in capsys.readouterr().err
    assert main(["translate", "no.py"]) == 2
    assert "no such file" in capsys.readouterr().err
