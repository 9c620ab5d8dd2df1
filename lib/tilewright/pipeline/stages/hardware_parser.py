"""Stage AcceleratorParser, which reads the hardware."""

from dataclasses import dataclass, replace

from tilewright.base.errors import InputError
from tilewright.hardware.source import parse_accelerator
from tilewright.pipeline.stages.base import Change
from tilewright.pipeline.stages.descriptions import Descriptions


@dataclass(frozen=True)
class AcceleratorParser(Change):
    """Reads the hardware from a YAML file, a dict, or an artifact.

    Errors in the hardware are reported together with errors in workload and mapping.

    Example: [ONNXModelParser, AcceleratorParser, Sum, Workload, MinimalEnergy, SpatialMappingGenerator, MinimalEnergy,
    Loma, CostModel]
    """

    takes = Descriptions
    gives = Descriptions
    stands_for = "AcceleratorParserStage"

    def change(self, item: Descriptions) -> Descriptions:
        """Descriptions with the accelerator that was read."""
        if item.hardware is None:
            return replace(item, problems=(*item.problems, *InputError("no hardware is given").problems))
        notices: list[str] = []
        try:
            accelerator = parse_accelerator(item.hardware, notices)
        except InputError as error:
            return replace(item, problems=(*item.problems, *error.problems))
        return replace(item, accelerator=accelerator, notices=(*item.notices, *notices))
