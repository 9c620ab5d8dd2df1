"""Small networks on small systems, and the results of a search of plans for them."""

import random
from pathlib import Path
from typing import Any

import tilewright
from tilewright.mapping.source import parse_mapping
from tilewright.pipeline.configuration.fusion_options import FusionOptions
from tilewright.pipeline.sources import parse_accelerator, parse_workload
from tilewright.pipeline.stages.multi.items import SystemProblem
from tilewright.plans.answer import Fusion
from tilewright.plans.space import Fixed, PlanSpace, plan_space

from tests.unit.cli.multi_core import HARDWARE
from tests.unit.multi_core.random_cases import RandomNetwork, random_system
from tests.unit.multi_core.runs import write_accelerator

SHORT: dict[str, Any] = {"nb_plans": 30, "fusion_time_budget_s": None, "jobs": 1, "lpf_limit": 4}
"""Settings of a short search that ends after a number of plans."""
BLANK = [{"name": "default"}]


def random_case(seed: int, folder: Path) -> tuple[Path, Path]:
    """A random network and a random system."""
    draw = random.Random(seed)
    return RandomNetwork(draw).save(folder), write_accelerator(folder / "hw", random_system(draw))


def fused(network: Path, hardware: Path | str = HARDWARE, mapping: Any = None, **settings: Any) -> Fusion:
    """The result of a short search."""
    found: Fusion = tilewright.fuse(network, hardware, mapping, **{**SHORT, **settings})
    return found


def system_problem(network: Path, hardware: Path | str = HARDWARE, mapping: Any = None) -> SystemProblem:
    """The network on a system."""
    workload = parse_workload(network, "corrected")
    return SystemProblem(workload, parse_accelerator(hardware), parse_mapping(BLANK if mapping is None else mapping))


def space_of(network: Path, fixed: Fixed | None = None, mapping: Any = None) -> PlanSpace:
    """The space of plans for a network on two cores."""
    return plan_space(system_problem(network, mapping=mapping), fixed or Fixed())


def options(**settings: Any) -> FusionOptions:
    """Options of a short search."""
    return FusionOptions(**{**SHORT, **settings})
