"""Items that go down a multi-core pipeline below the parsers: network with cores, CNs, and their costs."""

from collections.abc import Mapping as Table
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.base.artifacts.codec import encode
from tilewright.base.artifacts.digests import content_digest
from tilewright.base.artifacts.envelope import is_artifact
from tilewright.base.artifacts.files import file_of
from tilewright.base.errors import InputError, Problem, Problems
from tilewright.base.harmless import terminal
from tilewright.hardware.system import OFFCHIP, MultiCoreAccelerator
from tilewright.mapping.constraints import Mapping
from tilewright.mapping.runnable import UncostedWork, coverage_of, unmodelled_work
from tilewright.mapping.source import given_mapping
from tilewright.pipeline.stages.base import run_stages
from tilewright.pipeline.stages.descriptions import Descriptions
from tilewright.pipeline.stages.hardware_parser import AcceleratorParser
from tilewright.pipeline.stages.workload_parsers import ONNXModelParser, WorkloadParser
from tilewright.workload.graph import Workload, refuse_folded
from tilewright.workload.source import LAYERS, kind_of_source

if TYPE_CHECKING:
    from tilewright.multicore.nodes.graph import CnGraph
    from tilewright.multicore.scheduling.core_costs import CoreCostRow


MODEL = "corrected"
"""Profile with which every network is read: other profiles have neither all operators nor the tensors between them."""


@dataclass(frozen=True)
class SystemProblem:
    """Network to be run on the cores of an accelerator."""

    workload: Workload
    accelerator: MultiCoreAccelerator
    mapping: Mapping
    mapping_file: str = ""
    """File of the mapping, '' if there is none; messages name its lines unless it is an artifact."""
    notices: tuple[str, ...] = ()
    """Notices on unusual content of the descriptions."""
    uncosted: tuple[UncostedWork, ...] = ()
    """Work of the network for which there is no layer."""
    hardware_file: str = ""
    """File or artifact of the accelerator; '' if there is none."""

    def check_complete(self) -> None:
        """Raise InputError with a problem for each operator type with work without costs."""
        if self.uncosted:
            rows = [f"not costed, which strict forbids: {row.text}" for row in self.uncosted]
            raise InputError([Problem(row, self.workload.name) for row in rows])

    @property
    def coverage(self) -> dict[str, object]:
        """Share of the work of the network that has costs, and operators that only move data, as in a summary."""
        passed: dict[str, int] = {}
        for node in self.workload.nodes:
            if node.status == "pass-through":
                passed[node.operator_type] = passed.get(node.operator_type, 0) + 1
        return {"coverage": coverage_of(self.workload, self.uncosted), "passed_through": passed}


def read_system_problem(descriptions: Descriptions) -> SystemProblem:
    """Problem that descriptions make. Raises InputError with everything that is wrong with any of them."""
    return system_problem(read_parts(descriptions))


def read_parts(descriptions: Descriptions) -> Descriptions:
    """Descriptions with their network and accelerator, or with their problems; the mapping file is left to
    `system_problem`.
    """
    is_list = descriptions.workload is not None and kind_of_source(descriptions.workload) == LAYERS
    parser = WorkloadParser(MODEL) if is_list else ONNXModelParser(MODEL)
    read: Descriptions = next(run_stages((parser, AcceleratorParser()), descriptions))
    return read


def system_problem(read: Descriptions) -> SystemProblem:
    """Problem of a network and an accelerator that were read, with their mapping file, which is read here.

    Raises InputError with everything that is wrong with any of them.
    """
    problems, notices = Problems(), list(read.notices)
    problems.found += read.problems
    mapping = problems.attempt(given_mapping, read.mapping, notices)
    accelerator = read.accelerator
    if accelerator is not None and not isinstance(accelerator, MultiCoreAccelerator):
        message = "is one core; several cores need the file of an accelerator that names their files"
        place, such = file_of(read.hardware) or accelerator.name, "such as config/hardware/multi/quad_core.yaml"
        problems.found.append(Problem(message, place, allowed=such))
    if not problems.found:
        problems.found += [
            Problem(f"the pipeline has no stage that reads the {what}")
            for what, parsed in (("hardware", accelerator), ("workload", read.network))
            if parsed is None
        ]
    problems.finish()
    assert mapping is not None
    assert read.network is not None
    assert isinstance(accelerator, MultiCoreAccelerator)
    workload = read.network
    refuse_folded(workload, "several cores run each layer by itself")
    described = (workload, accelerator, mapping, file_of(read.mapping), tuple(notices), unmodelled_work(workload))
    return SystemProblem(*described, hardware_file=file_of(read.hardware))


def part_digest(accelerator: MultiCoreAccelerator) -> str:
    """Digest of the inputs of the CN graph: the cores, what they can run, and what their memories hold.

    It does not include links, energies, bandwidths and arrays, so that changes of them do not change the graph.
    """
    cores = []
    for place in accelerator.places:
        memories = [] if place.role == OFFCHIP else accelerator.core_of[place.core_id].memories
        sizes = [[memory.name, memory.size_bits, list(memory.operands)] for memory in memories]
        types = None if place.operator_types is None else list(place.operator_types)
        cores.append([place.core_id, place.role, types, sizes])
    shared = [[list(place) for place in group] for group in accelerator.shared_memories]
    return content_digest([cores, [list(group) for group in accelerator.sharing_groups], *shared])


def input_digests(problem: SystemProblem) -> dict[str, str]:
    """Digests of the descriptions for the provenance of a CN graph."""
    return {
        "cores": part_digest(problem.accelerator),
        "workload": content_digest(encode(problem.workload)),
        "mapping": content_digest(encode(problem.mapping)),
    }


def has_lines(file: str) -> bool:
    """Whether messages can name lines of the mapping file: it was written by a user and is no artifact."""
    return bool(file) and not is_artifact(Path(file))


@dataclass(frozen=True, eq=False, repr=False)
class CnProblem:
    """Network cut into computation nodes (CNs), before their costs are computed."""

    descriptions: SystemProblem
    """Network, accelerator and mapping file."""
    graph: "CnGraph"
    """CNs, and the data flow between them."""
    core_files: tuple[str, ...] = ()
    """Core files for which costs are requested; () for all of the accelerator."""
    notices: tuple[str, ...] = ()
    """Notices on unusual results of the tiling."""

    @property
    def wanted_core_files(self) -> tuple[str, ...]:
        """Names of the core files for which costs are requested."""
        return self.core_files or tuple(self.descriptions.accelerator.distinct_cores)

    def __repr__(self) -> str:
        return terminal(f"<to be costed on {', '.join(self.wanted_core_files)}: {self.graph!r}>")


@dataclass(frozen=True, repr=False)
class CostedCnProblem:
    """Network cut into CNs, with the costs of each on each core."""

    descriptions: SystemProblem
    """Network, accelerator and mapping file."""
    graph: "CnGraph"
    """CNs, and the data flow between them."""
    costs: "Table[str, tuple[CoreCostRow, ...]]"
    """Rows of each core file, one for each class of CNs with equal costs (`scheduling.cost_classes`)."""
    cost_model: str = ""
    """Model profile of the costs, or the name of a user's stage without one that made them; '' if not known."""

    def __repr__(self) -> str:
        return terminal(f"<costed on {', '.join(self.costs)}: {self.graph!r}>")
