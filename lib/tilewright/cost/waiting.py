"""Waiting terms of the latency: cycles for calls, commands and memory requests, from keys of the hardware file.

Most of these keys are attributes of hardware (`hardware.attributes`). The others are lists and tables, such as the
dimensions of commands and the caches of a memory. `waiting_kernel` computes the terms. The terms depend on the loop
order, unlike the terms of plug-ins.
"""

from typing import Any

import numpy as np

from tilewright.hardware.attributes import (
    CALL_KEYS,
    COMMAND_KEYS,
    REQUEST_KEYS,
    REQUEST_LATENCY,
    START_CYCLES,
    WAITING,
    figure,
)
from tilewright.hardware.core import Core, Memory
from tilewright.workload.layer import Layer

CALL, COMMAND, REQUEST = "call_waiting", "command_waiting", "request_waiting"
WAITING_TERMS = (CALL, COMMAND, REQUEST)
"""Names of the waiting terms, in the order in which they are added."""
MOST_CACHES = 4
"""Largest number of caches of a memory."""


def waiting_fields(operands: int, dimensions: int) -> list[tuple[Any, ...]]:
    """Fields of PROBLEM_DTYPE for the waiting kernels, each as (name, type) or (name, type, shape). Times are in
    cycles, sizes in bits."""
    return [
        ("has_waiting", np.int8),  # True if the core has any of the keys
        ("has_calls", np.int8),
        ("start_cycles", np.float64),
        ("call_cycles", np.float64),
        ("calls_in_flight", np.float64),
        ("command_iterations", np.int64),
        ("least_command_cycles", np.float64),
        ("command_latency_cycles", np.float64),
        ("commands_in_flight", np.float64),
        ("queued_commands", np.float64),
        ("command_dimension_count", np.int64),
        ("command_dimension", np.int8, (dimensions,)),  # [d] True if a command covers loops over d
        ("request_memory", np.int64),  # k of the memory whose requests take time, or -1
        ("request_latency_cycles", np.float64),
        ("requests_in_flight", np.float64),
        ("burst_bits", np.int64),
        ("word_cycles", np.float64),
        ("store_latency_cycles", np.float64),
        ("store_burst_bits", np.int64),
        ("line_bits", np.int64),
        ("page_bits", np.int64),
        ("page_cycles", np.float64),
        ("row_dimension", np.int64, (operands,)),  # [o] d whose elements follow each other in memory, or -1
        ("cache_count", np.int64),
        ("cache_bits", np.float64, (MOST_CACHES,)),
        ("cache_latency_cycles", np.float64, (MOST_CACHES + 1,)),  # the last one is the latency of the memory
    ]


def requests_of(core: Core) -> int:
    """Index of the memory whose requests take time; -1 if there is none."""
    found = [k for k, memory in enumerate(core.memories) if figure(REQUEST_LATENCY, memory.figures)]
    return found[0] if found else -1


def waiting_terms(core: Core) -> tuple[str, ...]:
    """WAITING_TERMS if the hardware file has at least one key of calls, commands or requests, otherwise ()."""
    return WAITING_TERMS if core.waits else ()


def waiting_keys(core: Core) -> tuple[str, ...]:
    """Keys of the hardware file that determine the waiting terms of a core, in the order of
    `hardware.attributes.WAITING`."""
    given = {name for name, _ in (*core.figures, *core.operational_array.figures)}
    given |= {name for memory in core.memories for name, _ in memory.figures}
    return tuple(one.key for one in WAITING if one.field in given)


def waiting_arrays(layer: Layer, core: Core) -> dict[str, Any]:
    """Values of the problem fields for the waiting kernels, by name of the field. Missing fields keep the value 0."""
    if not core.waits:
        return {"has_waiting": 0, "request_memory": -1}
    array, names = core.operational_array, list(layer.size_of)
    named = [name in array.command_dimensions for name in names]
    values: dict[str, Any] = {
        "has_waiting": 1,
        "has_calls": int(any(figure(one, core.figures) for one in CALL_KEYS)),
        "command_dimension": np.array(named, np.int8),
        "command_dimension_count": len(array.command_dimensions),
        "request_memory": requests_of(core),
    }
    values |= {one.field: figure(one, core.figures) for one in (START_CYCLES, *CALL_KEYS)}
    values |= {one.field: figure(one, array.figures) for one in COMMAND_KEYS}
    return values if values["request_memory"] < 0 else values | _requests(core.memories[requests_of(core)], layer)


def _requests(memory: Memory, layer: Layer) -> dict[str, Any]:
    """Values of the problem fields that describe the memory whose requests take time, by name of the field."""
    latency = figure(REQUEST_LATENCY, memory.figures)
    dimensions = {name: place for place, name in enumerate(layer.size_of)}
    rows = [
        next((dimensions[name] for name in memory.row_dimensions if name in loops), -1)
        for _, loops in layer.operand_dimensions
    ]
    return {
        **{one.field: figure(one, memory.figures) for one in REQUEST_KEYS},
        "row_dimension": np.array(rows, np.int64),
        "cache_count": len(memory.caches),
        "cache_bits": np.array([cache.size_bits for cache in memory.caches], np.float64),
        "cache_latency_cycles": np.array([*(one.request_latency_cycles for one in memory.caches), latency], np.float64),
    }
