"""Runs on one core with all their inputs, for verbs that evaluate or search the mappings of a run again."""

from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.base.artifacts.envelope import is_artifact, read_artifact
from tilewright.base.artifacts.files import existing_file
from tilewright.base.errors import InputError, Problem
from tilewright.base.json_values import JsonObject
from tilewright.base.steps import LAYERS, SUMMARY
from tilewright.cli.described_run import (
    HARDWARE,
    MAPPING,
    WORKLOAD,
    DescribedRun,
    core_in,
    hardware_digest,
    network_digest,
)
from tilewright.cli.runs import records_of
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.designs.core_trials import ExplainedRun
    from tilewright.results.run_point import RunPoint
    from tilewright.search.options import SearchOptions

Given = dict[str, Path | None]
"""Path that the user gives for each input of a run, by kind. If it is None, the input is searched for."""


def explained_run(
    folder: Path, given: Given, network_options: NetworkOptions
) -> "tuple[ExplainedRun, dict[str, Path]]":
    """Pair (run together with its inputs, paths of these inputs), for the run in the folder `folder`."""
    from tilewright.base.artifacts.codec import encode
    from tilewright.base.artifacts.digests import content_digest
    from tilewright.designs.core_trials import ExplainedRun
    from tilewright.hardware.whole_text import hardware_document
    from tilewright.pipeline.sources import parse_mapping, parse_workload
    from tilewright.results.records import layers_in_order

    artifact = read_artifact(folder / LAYERS, "tilewright/layers")
    summary = read_artifact(folder / SUMMARY, "tilewright/single-summary").payload
    options = search_options(artifact.provenance.get("options", {}), folder)
    run = DescribedRun.of(folder, artifact.provenance, summary)
    paths = paths_of_inputs(run, given, network_options)
    network = parse_workload(paths[WORKLOAD], options.model, options=network_options)
    run.check(WORKLOAD, network_digest(network, core_in(paths[HARDWARE])), str(paths[WORKLOAD]))
    mapping = parse_mapping(paths[MAPPING])
    run.check(MAPPING, content_digest(encode(mapping)), str(paths[MAPPING]))
    placed = layers_in_order(records_of(artifact, folder / LAYERS), summary)
    hardware = hardware_document(paths[HARDWARE]).data
    return ExplainedRun(folder.name, placed, hardware, network, mapping, options), paths


def run_with_inputs(
    place: str, run: "RunPoint", option: str = "search_again", given: str | None = None
) -> "ExplainedRun":
    """Run of `tilewright map` at `place`, with the inputs that are needed to evaluate and search its mappings on other
    hardware. `place` is the folder of the run, or the path of its records or its summary.

    Raises InputError if `place` does not belong to a run on one core, or if inputs are not found. The message names
    `option`, the option that needs the run, and `given`, the text with which the user names the run (default: `place`).
    """
    path = Path(place)
    folder = path.parent if path.name in (LAYERS, SUMMARY) else path
    if run.is_of_several_cores or not (folder / SUMMARY).is_file():
        why = "it is not the folder of a run of `tilewright map` on one core"
        raise InputError([Problem(f"cannot be searched again, which the option {option} needs: {why}", given or place)])
    return explained_run(folder, {HARDWARE: None, WORKLOAD: None, MAPPING: None}, NetworkOptions())[0]


def paths_of_inputs(
    run: DescribedRun, given: Given, network_options: NetworkOptions, is_system: bool = False
) -> dict[str, Path]:
    """Paths of the input files of a run, by kind.

    Raises InputError for files that are not found, for hardware of another run, and for a hardware artifact that does
    not contain the text of the hardware file.
    """
    from tilewright.hardware.whole_text import text_in

    hardware = given[HARDWARE]
    if hardware is not None:
        if is_artifact(existing_file(hardware, HARDWARE)) and not text_in(hardware):
            message = (
                "is an artifact that does not contain the text of its hardware file, so no number in the text can be"
                " changed: give the hardware file instead"
            )
            raise InputError([Problem(message, str(hardware))])
        run.check(HARDWARE, hardware_digest(hardware), str(hardware))
    found = run.descriptions(given, network_options, is_system, is_changed=True)
    missing = run.not_found({kind: found[kind] for kind in given})
    if missing:
        raise InputError(missing)
    return {kind: path for kind, path in found.items() if path is not None}


def not_searchable(what: str) -> str:
    """Message that mappings cannot be searched again, because a part that the user provided made them. `what` names
    this part, such as "a pipeline".
    """
    return f"was made by {what} of the user, so tilewright cannot search its mappings again"


def search_options(stated: JsonObject, folder: Path) -> "SearchOptions":
    """Search options of a run.

    Raises InputError if the run chose its mappings from a front. Also raises InputError if the run used a pipeline of
    the user, because options do not describe its stages.
    """
    from tilewright.base.objectives import OBJECTIVES
    from tilewright.base.parameters import made_of
    from tilewright.search.options import SearchOptions

    if "pipeline" in stated or stated.get("objective") not in OBJECTIVES:
        raise InputError([Problem(not_searchable("a pipeline"), str(folder))])
    if chosen := stated.get("choice"):
        message = (
            "has mappings that were chosen from the Pareto front of the network; a new search cannot repeat this choice"
        )
        raise InputError([Problem(message, str(folder), value=", ".join(chosen) if isinstance(chosen, dict) else "")])
    return made_of(SearchOptions, stated)
