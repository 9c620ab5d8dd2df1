"""The switches of a model profile by name, read without the package's own profiles."""

import re

OLD_SWITCHES = (
    "skip_first_accumulation_read",
    "round_up_spatial_factors",
    "exact_temporal_sizes",
    "exact_window_sizes",
    "serial_half_shared_loading",
    "consistent_window_union",
    "per_level_loading_floor",
)
NEW_SWITCHES = (
    "whole_tiles",
    "every_transfer_takes_port_time",
    "best_double_buffers",
    "room_for_final_outputs",
    "wide_until_added",
    "keep_given_unrolling",
    "ties_by_equation",
)
IN_MEMORY_SWITCHES = ("complete_in_memory_model", "in_memory_active_parts")
"""Switches that affect in-memory arrays only."""
SWITCHES = (*OLD_SWITCHES, *NEW_SWITCHES)
"""All switches that affect the spatial mapping of a layer, or its costs under a given spatial mapping.

The others affect the reading of networks or the choice between layers.
"""
REFERENCE = "zigzag-3.9.1"
Switches = frozenset[str]


def switches_of(model: str) -> Switches:
    """Switches that are on in a profile such as `zigzag-3.9.1+whole_tiles` or `corrected-best_double_buffers`."""
    base = next(name for name in (REFERENCE, "corrected") if model.startswith(name))
    on = {*SWITCHES, *IN_MEMORY_SWITCHES} if base == "corrected" else set()
    terms = re.findall(r"[+-][a-z_]+", model[len(base) :])
    for term in terms:
        if term[0] == "+":
            on.add(term[1:])
        else:
            on.discard(term[1:])
    return frozenset(on)
