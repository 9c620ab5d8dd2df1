"""Evaluator of designs: it computes the costs of one network on accelerators with one or several cores."""

from abc import ABC, abstractmethod
from typing import Any

from tilewright.base.errors import InputError, MappingError
from tilewright.base.json_values import JsonObject
from tilewright.designs.design_cost import NO_MAPPING, DesignCost
from tilewright.hardware.core import Accelerator
from tilewright.hardware.source import parse_accelerator
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.mapping.source import MappingSource, parse_mapping
from tilewright.workload.graph import Workload


class DesignEvaluator(ABC):
    """Evaluator of one network on many designs, one after the other. The designs have one or several cores.

    `mapping` has the decisions that the mapping file fixes. The results for a design do not depend on the designs
    before it.
    """

    def __init__(self, network: Workload, mapping: MappingSource | None) -> None:
        self.network = network
        self.mapping = parse_mapping(NO_MAPPING if mapping is None else mapping)

    def cost(self, accelerator: Any) -> DesignCost:
        """Costs of the network on a design, or the reason why there are none."""
        try:
            return self.evaluated(accelerator)
        except (InputError, MappingError) as error:
            return DesignCost.refused(error)

    @abstractmethod
    def evaluated(self, accelerator: Any) -> DesignCost:
        """Costs of the network on a design.

        Raises InputError if the design is not valid for the network. Raises MappingError if no mapping fits.
        """


def accelerator_of(hardware: JsonObject, is_of_systems: bool, notices: list[str] | None = None) -> Accelerator:
    """Accelerator of a design. Notices on its hardware file are appended to `notices`.

    `is_of_systems` is true if the base hardware file has several cores. Raises InputError if the accelerator is not
    valid, or if only one of the two (accelerator and base) has several cores.
    """
    accelerator = parse_accelerator(hardware, notices)
    if isinstance(accelerator, MultiCoreAccelerator) != is_of_systems:
        kinds = ("one core", "several cores")
        raise InputError(f"the base has {kinds[is_of_systems]}, but the design has {kinds[not is_of_systems]}")
    return accelerator
