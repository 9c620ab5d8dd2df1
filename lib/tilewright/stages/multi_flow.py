"""The multi-core flow: its default pipeline, what goes in and what ends it."""

from tilewright import steps
from tilewright.search.options import CoreSearchOptions
from tilewright.stages.catalogue import CATALOGUES
from tilewright.stages.descriptions import Descriptions
from tilewright.stages.entries import Entry
from tilewright.stages.flow import Flow
from tilewright.stages.multi_result import MultiCoreResult
from tilewright.stages.system_problem import SystemProblem


def parser_entries(onnx: bool = True, split_layers: bool = False) -> list[Entry]:
    """The stages that read what people wrote."""
    reader = "StreamONNXModelParser" if onnx else "UserDefinedModelParser"
    splitter = [Entry("LayerSplitting")] if split_layers else []
    return [Entry(reader), Entry("AcceleratorParser"), *splitter, Entry("SystemMappingParser")]


def multi_flow(split_layers: bool = False) -> Flow:
    """The multi-core flow, with or without the layers split in its default pipeline."""

    def parsers(onnx: bool) -> list[Entry]:
        return parser_entries(onnx, split_layers)

    def default(options: CoreSearchOptions, onnx: bool) -> list[Entry]:
        return [
            *parsers(onnx),
            *(Entry(name) for step in ("cns", "cost", "allocate") for name in steps.STEPS[step].stages),
        ]

    return Flow(
        catalogue=CATALOGUES[steps.MULTI],
        default_entries=default,
        takes=Descriptions,
        giver="what people wrote",
        problem=SystemProblem,
        parser_entries=parsers,
        collects=(MultiCoreResult,),
    )


MULTI = multi_flow()
