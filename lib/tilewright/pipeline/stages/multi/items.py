"""Items of a multi-core pipeline below its parsers: a network with cores, its computation nodes (CNs), and CNs with
costs.
"""

from collections.abc import Mapping as Table
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.base.artifacts.codec import encode
from tilewright.base.artifacts.digests import content_digest
from tilewright.base.artifacts.envelope import is_artifact
from tilewright.base.artifacts.files import file_of
from tilewright.base.errors import InputError, Problem, Problems, Unused
from tilewright.base.harmless import terminal
from tilewright.base.json_values import JsonObject
from tilewright.hardware.off_chip_keys import keys_without_streams, keys_without_views
from tilewright.hardware.system import OFFCHIP, MultiCoreAccelerator
from tilewright.hardware.waiting_checks import keys_without_nodes
from tilewright.mapping.constraints import Mapping
from tilewright.mapping.file_checks import document_behind
from tilewright.mapping.plan_forms import applied_plan
from tilewright.mapping.runnable import UncostedWork, coverage_fields, coverage_of, unmodelled_work
from tilewright.mapping.source import given_mapping
from tilewright.multicore.nodes.reduction_cuts import cut_reductions
from tilewright.pipeline.stages.base import run_stages
from tilewright.pipeline.stages.descriptions import Descriptions
from tilewright.pipeline.stages.hardware_parser import AcceleratorParser
from tilewright.pipeline.stages.workload_parsers import ONNXModelParser, WorkloadParser
from tilewright.workload.graph import Workload, refuse_folded
from tilewright.workload.network_identity import identity_of_network
from tilewright.workload.source import LAYERS, kind_of_source

if TYPE_CHECKING:
    from tilewright.multicore.nodes.graph import CnGraph
    from tilewright.multicore.scheduling.core_costs import CoreCostRow


REDUCTIONS = "reductions"
"""Key of a digest in the provenance of a CN graph: the digest of the network after reductions were cut between cores,
as the mapping file requires. Graphs without such cuts do not have this key.
"""
MODEL = "corrected"
"""Model profile with which every network for several cores is read. Other profiles do not read all operators, and read
no tensors between operators.
"""


@dataclass(frozen=True)
class SystemProblem:
    """Network to be run on the cores of an accelerator."""

    workload: Workload
    """Network, with reductions cut between cores if the mapping file cuts them."""
    accelerator: MultiCoreAccelerator
    """Cores, and the links between them."""
    mapping: Mapping
    """Entries of the mapping file."""
    mapping_file: str = ""
    """Path of the mapping file or artifact, for messages; '' if the mapping does not come from a file. Messages have
    line numbers only if this is a mapping file.
    """
    notices: tuple[str, ...] = ()
    """Notices on unusual content of the input files."""
    uncosted: tuple[UncostedWork, ...] = ()
    """Operators that are in the network but have no cost model."""
    hardware_file: str = ""
    """Path of the hardware file or artifact; '' if the accelerator does not come from a file."""
    read: "tuple[Workload, Mapping] | None" = None
    """Network and mapping before reductions were cut between cores; None if no reduction was cut."""
    written: Mapping | None = None
    """Mapping as the file gives it, with its network plan; None if the file has no plan. `mapping` has the
    entries that are made from this plan.
    """

    @property
    def workload_as_read(self) -> Workload:
        """Network as the network file describes it, before reductions are cut between cores."""
        return self.workload if self.read is None else self.read[0]

    @property
    def mapping_as_read(self) -> Mapping:
        """Mapping before reductions are cut between cores. Such a cut adds entries for the parts of the layer and for
        the additions; this mapping does not have these entries. If the file has a network plan, this mapping has the
        entries and stacks that replace the plan.
        """
        return self.mapping if self.read is None else self.read[1]

    @property
    def mapping_as_written(self) -> Mapping:
        """Mapping as the file gives it. If the file has a network plan, this mapping has the plan itself, and
        `mapping_as_read` has the entries and stacks that replace the plan. Otherwise, the two mappings are equal.
        """
        return self.mapping_as_read if self.written is None else self.written

    def check_complete(self) -> None:
        """Raise InputError with a problem for each operator type whose costs are not computed."""
        if self.uncosted:
            rows = [
                f"has operators without costs, which the option strict forbids: {row.text}" for row in self.uncosted
            ]
            raise InputError([Problem(row, self.workload.name) for row in rows])

    @property
    def coverage(self) -> JsonObject:
        """Summary fields about operators without costs."""
        return coverage_fields(self.workload, coverage_of(self.workload, self.uncosted))


def read_system_problem(descriptions: Descriptions) -> SystemProblem:
    """Network with cores and mapping, read from descriptions. Raises InputError with all errors of all descriptions."""
    return system_problem(read_parts(descriptions))


def read_parts(descriptions: Descriptions) -> Descriptions:
    """Descriptions with the network and the accelerator. Errors in these two inputs are in the field `problems` of the
    result. The mapping file is read later, by `system_problem`.
    """
    is_list = descriptions.workload is not None and kind_of_source(descriptions.workload) == LAYERS
    parser = WorkloadParser(MODEL) if is_list else ONNXModelParser(MODEL)
    read: Descriptions = next(run_stages((parser, AcceleratorParser()), descriptions))
    return read


def system_problem(read: Descriptions) -> SystemProblem:
    """Network with cores and mapping, made from descriptions whose network and accelerator have been read. This
    function reads the mapping file. If the file cuts the reduction of a layer between cores, the layer is replaced by
    its parts and by additions of their partial sums. Raises InputError with all errors of network, accelerator and
    mapping.
    """
    problems, notices = Problems(), list(read.notices)
    problems.found += read.problems
    written = problems.attempt(given_mapping, read.mapping, notices, plans=True)
    accelerator = read.accelerator
    if accelerator is not None and not isinstance(accelerator, MultiCoreAccelerator):
        message = (
            "is the file of one core; a run on several cores needs the file of an accelerator, which names core files"
        )
        place, such = file_of(read.hardware) or accelerator.name, "such as config/hardware/multi/quad_core.yaml"
        problems.found.append(Problem(message, place, allowed=such))
    if not problems.found:
        problems.found += [
            Problem(f"the pipeline has no stage that reads the {what}")
            for what, parsed in (("hardware", accelerator), ("workload", read.network))
            if parsed is None
        ]
    problems.finish()
    assert written is not None
    assert read.network is not None
    assert isinstance(accelerator, MultiCoreAccelerator)
    workload = read.network
    refuse_folded(workload, "a run on several cores needs each layer separately")
    mapping = _applied(written, read.mapping, workload, accelerator, notices)
    cuts = Problems(document_behind(mapping, file_of(read.mapping)))
    network, entries = cut_reductions(workload, mapping, accelerator, cuts)
    cuts.finish(notices)
    for file, core in accelerator.distinct_cores.items():
        notices += keys_without_nodes(core, file)
    notices += keys_without_views(accelerator)
    described = (network, accelerator, entries, file_of(read.mapping), tuple(notices), unmodelled_work(workload))
    as_read = None if network is workload else (workload, mapping)
    as_written = None if written is mapping else written
    return SystemProblem(*described, hardware_file=file_of(read.hardware), read=as_read, written=as_written)


def _applied(
    written: Mapping, source: object, workload: Workload, accelerator: MultiCoreAccelerator, notices: list[str]
) -> Mapping:
    """Mapping in which entries and stacks replace a network plan. Raises InputError with all errors of the plan."""
    plan = Problems(document_behind(written, file_of(source)))
    mapping = applied_plan(written, workload, accelerator, plan)
    plan.finish(notices)
    return mapping


def part_digest(accelerator: MultiCoreAccelerator) -> str:
    """Digest of the properties of an accelerator that affect the CN graph: the cores, the operators that each core can
    run, the sizes and operands of its memories, and the memories that several cores share.

    Links, energies, bandwidths and arrays are left out, because the graph does not depend on them.
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
    """Digests of three inputs, for the provenance of a CN graph. The keys are `cores` (the cores of the accelerator),
    `workload` and `mapping`. If reductions are cut between cores, a further key has the digest of the network after the
    cut.
    """
    cut = {} if problem.read is None else {REDUCTIONS: identity_of_network(problem.workload)}
    return {
        "cores": part_digest(problem.accelerator),
        "workload": identity_of_network(problem.workload_as_read),
        "mapping": content_digest(encode(problem.mapping_as_written)),
        **cut,
    }


def has_lines(file: str) -> bool:
    """True if messages can name lines of a file: the path is known, and the file is not an artifact."""
    return bool(file) and not is_artifact(Path(file))


@dataclass(frozen=True, eq=False, repr=False)
class CnProblem:
    """Network cut into computation nodes (CNs), before their costs are computed."""

    descriptions: SystemProblem
    """Network, accelerator and mapping file."""
    graph: "CnGraph"
    """CNs, and the data flow between them."""
    core_files: tuple[str, ...] = ()
    """Names of the core files for which costs are requested; () for all core files of the accelerator."""
    notices: tuple[str, ...] = ()
    """Notices on unusual properties of the tiling."""

    @property
    def wanted_core_files(self) -> tuple[str, ...]:
        """Names of the core files for which costs are requested."""
        return self.core_files or tuple(self.descriptions.accelerator.distinct_cores)

    def __repr__(self) -> str:
        return terminal(f"<to be costed on {', '.join(self.wanted_core_files)}: {self.graph!r}>")


@dataclass(frozen=True, repr=False)
class CostedCnProblem:
    """Network cut into CNs, with the costs of each CN on each core."""

    descriptions: SystemProblem
    """Network, accelerator and mapping file."""
    graph: "CnGraph"
    """CNs, and the data flow between them."""
    costs: "Table[str, tuple[CoreCostRow, ...]]"
    """Rows of the cost table for each core file, by name of the file: one row for each class of CNs with equal costs
    (`scheduling.cost_classes`).
    """
    cost_model: str = ""
    """Name of the model profile with which the costs were computed; '' if not known. If a stage of a user computed the
    costs without a model profile, the field has the name of this stage.
    """

    @property
    def unused(self) -> list[Unused]:
        """Notices on keys of off-chip memories without effect, because no CN streams data from or to the memory."""
        streamed = {stream.operand for rows in self.costs.values() for row in rows for stream in row.streams}
        return [*keys_without_streams(self.descriptions.accelerator, streamed)]

    def __repr__(self) -> str:
        return terminal(f"<costed on {', '.join(self.costs)}: {self.graph!r}>")
