"""Which runs on several cores have a plan searched for: those that say so, and those that say nothing."""

from collections.abc import Mapping
from typing import Any

from tilewright.cli.config_files import find_file, mapping_for
from tilewright.configuration.fusion_options import FusionOptions
from tilewright.fusion.tiling_options import TilingOptions
from tilewright.parameters import parameters_of
from tilewright.scheduling.options import ScheduleSettings

OPEN_MAPPING = "multi/open"
"""The mapping file of runs that search for a plan, unless they name one."""
FUSION_KEY, SEARCHED = "fusion", "search"


def says_nothing(entry: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    """Whether a run of several cores leaves open how its network is cut and mapped.

    `values` are those of its keys, also from the top of the configuration. It names no mapping file, there is none of
    the name of its hardware, and no key says anything of `fusion`, of tiles and stacks, of stages, or of schedules that
    the search could not follow.
    """
    if entry.get("mapping") is not None or not isinstance(entry.get("hardware"), str):
        return False
    kinds = (FusionOptions, TilingOptions, ScheduleSettings)
    searched, cutting, schedules = ({parameter.name for parameter in parameters_of(kind)} for kind in kinds)
    if "pipeline" in entry or values.keys() & ({FUSION_KEY} | cutting | (schedules - searched)):
        return False
    is_file = [find_file("mapping", name).is_file() for name in (OPEN_MAPPING, mapping_for(entry["hardware"]))]
    return is_file == [True, False]
