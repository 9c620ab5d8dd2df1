"""Stage MappingParser, which reads the mapping file and combines network, core and mapping."""

from dataclasses import dataclass

from tilewright.base.errors import Problem, Problems
from tilewright.hardware.core import Accelerator, Core, several_cores_problem, single_core
from tilewright.mapping.constraints import Mapping
from tilewright.mapping.file_checks import document_behind
from tilewright.mapping.notices import array_width_notices, element_fit_problems
from tilewright.mapping.runnable import restrict_to_core
from tilewright.mapping.source import given_mapping, names_unknown_to
from tilewright.mapping.unused_entries import note_unused_on
from tilewright.mapping.zero_keys import note_unused_zeros
from tilewright.pipeline.stages.base import Change
from tilewright.pipeline.stages.descriptions import Descriptions, NetworkProblem
from tilewright.workload.graph import Workload
from tilewright.workload.layer import Layer

NO_NETWORK = Workload("", ())
NO_HARDWARE = Accelerator("", ())


@dataclass(frozen=True)
class MappingParser(Change):
    """Reads the mapping file, and checks it against the core and the network that other parsers have read.

    If a pipeline does not have this stage, the stage is added after the other parsers. Pipelines for zigzag-dse do not
    have this stage, because in zigzag-dse the other parsers read the mapping file.

    Example: [WorkloadParser, AcceleratorParser, MappingParser, Sum, Workload, MinimalLatency, SpatialMappingConversion,
    TemporalOrderingConversion, CostModel]
    """

    takes = Descriptions
    gives = NetworkProblem
    stands_for = "reading the mapping file, a part of WorkloadParserStage and of ONNXModelParserStage"

    def change(self, item: Descriptions) -> NetworkProblem:
        """Network problem made from the descriptions. Raises InputError with all errors of all descriptions."""
        problems = Problems()
        problems.found += item.problems
        is_only_read = item.network is None and item.accelerator is None
        mapping = problems.attempt(given_mapping, item.mapping, problems.notices, plans=is_only_read)
        if not problems.found:
            problems.found += _what_does_not_fit_together(item, mapping)
        problems.finish()
        assert mapping is not None
        network, accelerator = item.network or NO_NETWORK, item.accelerator or NO_HARDWARE
        of_mapping = Problems(document_behind(mapping, item.mapping_file))
        note_unused_on(of_mapping, mapping, item.network, accelerator.cores)
        notices = [*problems.notices, *of_mapping.notices]
        if item.network is not None:
            for core in accelerator.cores[:1]:
                notices += array_width_notices(_layers_on(core, network), core, mapping, item.hardware_file)
                notices += note_unused_zeros(
                    _layers_on(core, network),
                    core,
                    lambda layer: dict(mapping.constraints_for(layer).memory_operand_links),
                    (item.hardware_file, item.workload_file),
                )
        return NetworkProblem(network, accelerator, mapping, notices=(*item.notices, *notices))


def _what_does_not_fit_together(item: Descriptions, mapping: Mapping | None) -> list[Problem]:
    unread = [
        Problem(f"the pipeline has no stage that reads the {what}")
        for what, source, parsed in (
            ("hardware", item.hardware, item.accelerator),
            ("workload", item.workload, item.network),
        )
        if source is not None and parsed is None
    ]
    if unread or mapping is None or item.mapping is None or item.network is None or item.accelerator is None:
        return unread  # also if only one input is read
    if len(item.accelerator.cores) != 1:
        return [several_cores_problem(item.accelerator, item.hardware_file)]
    core = single_core(item.accelerator)
    unknown = names_unknown_to(mapping, core, item.network, item.mapping_file)
    # With wrong names in the mapping, sizes cannot be checked.
    return unknown or element_fit_problems(_layers_on(core, item.network), core, mapping, item.hardware_file)


def _layers_on(core: Core, network: Workload) -> list[Layer]:
    """Layers of the network that the core can run."""
    return [node.layer for node in restrict_to_core(network, core)[0].nodes if node.layer is not None]
