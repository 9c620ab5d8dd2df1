"""Network files of runs, which a comparison of runs reads again with another batch."""

from collections.abc import Sequence
from pathlib import Path

from tilewright.base.artifacts.envelope import is_artifact, read_artifact
from tilewright.base.errors import InputError, Problem, Problems
from tilewright.base.steps import LAYERS, SUMMARY
from tilewright.cli.described_run import DescribedRun
from tilewright.cli.number_lists import BATCHES
from tilewright.hardware.core import Core
from tilewright.workload.batches import BatchedNetwork
from tilewright.workload.network_options import NetworkOptions


def batched_networks(
    places: tuple[str, str], files: tuple[Path | None, Path | None], cores: tuple[Core, Core], batches: Sequence[int]
) -> tuple[BatchedNetwork, BatchedNetwork]:
    """Pair of the network files of two runs, in a form in which the batch can be changed. `places` are the folders of
    the runs, and `cores` the cores of the runs. `files` are the network files; a file that is None is searched for.

    Raises InputError if a file is not found, if its batch cannot be changed, or if the files have different batches.
    Also raises InputError if `batches` has only the present batch.
    """
    problems = Problems()
    found = [problems.attempt(_network, *of_run) for of_run in zip(places, files, cores, strict=True)]
    problems.finish()
    first, second = (network for network in found if network is not None)
    if first.batch != second.batch:
        values = f"{first.batch} in {first.path}, {second.batch} in {second.path}"
        raise InputError([Problem("the runs have different batches", path=BATCHES, value=values)])
    if tuple(batches) == (first.batch,):
        raise InputError([Problem("is the batch of the runs: give other batches", path=BATCHES, value=str(batches[0]))])
    return first, second


def _network(place: str, file: Path | None, core: Core) -> BatchedNetwork:
    """Network file of the run in the folder `place`, in a form in which the batch can be changed. `place` can also be a
    result file in this folder. If `file` is None, the network file is searched for. Raises InputError if the folder has
    no readable results, or if the network file is not found.
    """
    folder = Path(place).parent if Path(place).name in (LAYERS, SUMMARY) else Path(place)
    artifact = read_artifact(folder / LAYERS, "tilewright/layers")
    run = DescribedRun.of(folder, artifact.provenance, read_artifact(folder / SUMMARY).payload)
    options = _options_of_network(run, core)
    path = file or run.network_file(core, options)
    if path is None:
        message = (
            "the batch cannot be changed: the YAML or ONNX file of the network was not found in"
            f" {run.places} (files are read with the network options of the run)"
        )
        raise InputError([Problem(message, str(folder), path=BATCHES, value=run.workload)])
    network = BatchedNetwork(path, run.model, options)
    assert network.batch
    return network


def _options_of_network(run: DescribedRun, core: Core) -> NetworkOptions:
    """Options with which the network of the run was read. If the network file of the run is an artifact (a parsed
    network), its provenance has these options. Otherwise, the result is the default options.
    """
    found = run.network(core, NetworkOptions())
    if found is None or not is_artifact(found):
        return NetworkOptions()
    return NetworkOptions.of_stated(read_artifact(found).provenance.get("options", {}))
