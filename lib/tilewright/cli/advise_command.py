"""Command `tilewright advise` for a run, as other verbs print it."""

from collections.abc import Mapping
from pathlib import Path

from tilewright.base.artifacts.envelope import read_artifact
from tilewright.base.errors import TilewrightError
from tilewright.base.steps import LAYERS, SUMMARY
from tilewright.cli.described_run import DescribedRun
from tilewright.cli.explained_run import paths_of_inputs, search_options
from tilewright.designs.decision_text import command_line
from tilewright.workload.network_options import NetworkOptions


def advise_command(folder: Path, given: Mapping[str, Path | None]) -> str:
    """Command that computes the effects of changes of the run on one core in `folder`. The result is '' if the command
    would refuse the run, or would not find its inputs. `given` has the paths that the user gave, by kind of input.
    """
    try:
        artifact = read_artifact(folder / LAYERS, "tilewright/layers")
        search_options(artifact.provenance.get("options", {}), folder)
        summary = read_artifact(folder / SUMMARY, "tilewright/single-summary").payload
        paths_of_inputs(DescribedRun.of(folder, artifact.provenance, summary), {**given}, NetworkOptions())
    except TilewrightError:
        return ""
    options = [word for kind, path in given.items() if path is not None for word in (f"--{kind}", path)]
    return command_line("advise", folder, *options)
