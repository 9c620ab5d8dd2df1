"""Options of a space: those of the search on one core, or of the whole flow of several cores."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.allocation.options import AllocationParameters
from tilewright.artifacts.codec import encode
from tilewright.errors import Problem
from tilewright.fusion.tiling_options import TilingOptions
from tilewright.profile import CORRECTED
from tilewright.scheduling.options import ScheduleSettings
from tilewright.search.options import CnSearchOptions, SearchOptions


@dataclass(frozen=True, eq=False, repr=False)
class SystemOptions(CnSearchOptions, TilingOptions, AllocationParameters, ScheduleSettings):
    """Options of designs of several cores: of the search on a core, of how networks are cut, of the search for an
    allocation and of schedules."""

    def conflicts(self, wrong: set[str]) -> Iterable[Problem]:
        """Options that exclude each other."""
        yield from CnSearchOptions.conflicts(self, wrong)
        yield from TilingOptions.conflicts(self, wrong)

    def stated(self) -> dict[str, Any]:
        """The options as plain data."""
        tiling = self.part(TilingOptions).stated()
        return tiling | {name: encode(value) for name, value in self.as_dict().items() if name not in tiling}


SpaceOptions = SearchOptions | SystemOptions
KINDS: dict[bool, type[SpaceOptions]] = {False: SearchOptions, True: SystemOptions}
"""Whether designs are of several cores -> their options."""
DEFAULTS: dict[bool, Mapping[str, Any]] = {
    False: {"model": CORRECTED.name, "exploit_data_locality": True},
    True: {},
}
"""Where a space differs from a configuration: designs are compared, and without them no memory is worth its size."""


def stated_options(options: SpaceOptions) -> dict[str, Any]:
    """Options as plain data."""
    if isinstance(options, SystemOptions):
        return options.stated()
    found: dict[str, Any] = encode(options)
    return found
