"""Kernels that compute the waiting terms of the latency: times for calls, commands and memory requests.

These times do not follow from the arithmetic of a layer.

The hardware file gives these times (`cost.waiting`). Little's law turns each time into a lower limit on the latency:
with at most n requests in flight, and t cycles for each, a request ends every t / n cycles. If the largest limit
exceeds the latency of the cost model, the latency is raised to this limit. The latency never falls, so every lower
bound of the cost model stays valid.

A call is the work between two loads: the loops that every operand keeps below its outermost memory. A call loads the
inputs of these loops anew. The array runs a call as one command or several, each for a part of the call. Commands run
only after the first inputs are on chip, and before the last results leave the array.
"""

import math

import numpy as np

from tilewright.base.compiled import kernel
from tilewright.cost.allocation_kernel import OUTPUT_INDEX
from tilewright.cost.problem import IRRELEVANT
from tilewright.cost.tile_kernel import tile_elements_of
from tilewright.cost.workspace import (
    CALL_WAITING,
    COMMAND_WAITING,
    LATENCY,
    OFFLOADING,
    ONLOADING,
    REQUEST_WAITING,
    SLICE_ROW,
    WAITING_COUNT,
)
from tilewright.hardware.core import TL

STORES_OF_A_MISS = 2
"""Number of transfers for a burst of outputs that is not in the first cache: one to fetch the burst, and one to write
it back later."""


@kernel
def iterations(ws, first, last):
    """Product of the loops from position `first` up to, but not including, position `last`."""
    product = 1.0
    for i in range(first, last):
        product *= ws.loop_size[i]
    return product


@kernel
def call_boundary(problem, ws):
    """Number of loops of a call: the loops that every operand keeps below its outermost memory."""
    least = ws.loop_count
    for o in range(problem.operand_count):
        top = problem.level_count[o] - 1
        if top > 0:
            least = min(least, ws.bound[o, top - 1])
    return least


@kernel
def load_boundary(problem, ws, o, calls):
    """Number of innermost loops that one load of operand `o` covers. `calls` is the number of loops of a call.

    On a core with calls, a load covers the loops of a call. On any other core, a load covers the loops that the operand
    keeps below its outermost memory. It also covers the next outer loops, as far as they do not replace the data of the
    operand.
    """
    top = problem.level_count[o] - 1
    if problem.has_calls:
        return calls
    return ws.merged[o, top - 1] if top > 0 else 0


@kernel
def size_tile_of_loops(problem, ws, o, last):
    """Write the sizes of a tile of operand `o` to row SLICE_ROW of `ws.dimension_size`, one size for each loop
    dimension. The tile covers all spatial loops of the operand and the `last` innermost temporal loops.
    """
    for d in range(problem.dimension_count):
        ws.dimension_size[SLICE_ROW, d] = 1.0
    for s in range(problem.spatial_start[o, 0], problem.spatial_start[o, problem.level_count[o] + 1]):
        ws.dimension_size[SLICE_ROW, problem.spatial_dimension[o, s]] *= problem.spatial_factor[0, o, s]
    for i in range(last):
        ws.dimension_size[SLICE_ROW, ws.loop_dimension[i]] *= ws.loop_size[i]


@kernel
def bits_outside(problem, o):
    """Bits of an element of operand `o` in its outermost memory."""
    return problem.final_precision_bits if o == OUTPUT_INDEX else problem.precision_bits[o]


@kernel
def requests_memory(problem, o):
    """True if the outermost memory of operand `o` is the memory whose requests take time."""
    return problem.level_memory[o, problem.level_count[o] - 1] == problem.request_memory


@kernel
def footprint_bits(problem, ws, last):
    """Bits that the `last` innermost temporal loops touch, summed over the operands whose requests take time (see
    `requests_memory`).
    """
    bits = 0.0
    for o in range(problem.operand_count):
        if requests_memory(problem, o):
            size_tile_of_loops(problem, ws, o, last)
            bits += tile_elements_of(problem, ws, o, SLICE_ROW) * bits_outside(problem, o)
    return bits


@kernel
def serving_level(problem, footprint):
    """Index of the first cache with room for `footprint` bits. If no cache has room, the result is the number of
    caches."""
    level = 0
    while level < problem.cache_count and footprint > problem.cache_bits[level]:
        level += 1
    return level


@kernel
def request_latency(problem, ws, o, first, is_store):
    """Average latency in cycles of a request of operand `o`, if each load covers the `first` innermost loops.

    The latency depends on the cache in which the data are. Data that the layer has used before are in the first cache
    with room for all data touched since their last use. Data that are used for the first time are in the first cache
    with room for all data of the layer, because an earlier run of the layer has left them there. If no cache has room,
    the data are in the memory. A store to the first cache has latency 0.

    If the size of a cache line is given, and a load takes a part of each line, the loads of the other parts find the
    line in a cache. The loads of the other parts count as uses of data that the layer has used before.
    """
    if problem.cache_count == 0:
        return problem.request_latency_cycles
    total = iterations(ws, first, ws.loop_count)
    outside, inside, repeated, latency = total, 1.0, 0.0, 0.0
    row = 0.0
    if problem.line_bits > 0 and problem.row_dimension[o] >= 0:
        size_tile_of_loops(problem, ws, o, first)
        row = ws.dimension_size[SLICE_ROW, problem.row_dimension[o]] * bits_outside(problem, o)
    for i in range(first, ws.loop_count + 1):
        if i < ws.loop_count:
            size = ws.loop_size[i]
            outside /= size
            if problem.kind[o, ws.loop_dimension[i]] != IRRELEVANT:
                fresh = float(size)
                if row > 0 and ws.loop_dimension[i] == problem.row_dimension[o]:
                    fresh = max(1.0, min(fresh, size * row / problem.line_bits))
                    row *= size
                loads = (size - fresh) * outside * inside
                inside *= fresh
                if loads == 0:
                    continue
            else:
                loads = (size - 1) * outside * inside
            repeated += loads
        else:
            loads = total - repeated
        level = serving_level(problem, footprint_bits(problem, ws, i))
        if level > 0 or not is_store:
            latency += loads * problem.cache_latency_cycles[level]
    return latency / total


@kernel
def greatest_divisor(one, other):
    """Greatest common divisor of two integers."""
    while other != 0:
        one, other = other, one % other
    return one


@kernel
def rows_of_tile(problem, ws, o, last):
    """Triple (number of rows of a tile, bits of a row of the tile, bits of a row of the whole tensor). The tile covers
    all spatial loops of operand `o` and the `last` innermost temporal loops.

    The elements of a row are adjacent in memory: they lie along the dimension `row_dimension` of the operand. If this
    dimension is unknown, the tile counts as one row, and a row of the tensor is as long as the tile.
    """
    bits = bits_outside(problem, o)
    size_tile_of_loops(problem, ws, o, last)
    elements = tile_elements_of(problem, ws, o, SLICE_ROW)
    d = problem.row_dimension[o]
    if d < 0:
        return 1.0, np.int64(math.ceil(elements * bits)), np.int64(math.ceil(elements * bits))
    row = ws.dimension_size[SLICE_ROW, d]
    whole = row
    for i in range(last, ws.loop_count):
        if ws.loop_dimension[i] == d:
            whole *= ws.loop_size[i]
    return elements / row, np.int64(math.ceil(row * bits)), np.int64(math.ceil(whole * bits))


@kernel
def words_of_row(row, whole, width):
    """Average number of aligned words of `width` bits that a row of `row` bits touches.

    Rows are `whole` bits apart, so that only some alignments occur.
    """
    step = greatest_divisor(greatest_divisor(row, whole), width)
    return (row + width - step) / width


@kernel
def request_cycles(problem, ws, calls):
    """Triple (cycles that all memory requests of the layer take, latency in cycles of the first load of a call, number
    of requests).

    Requests overlap with each other, and with the transfers over the port. The first request of a page holds up all
    other requests. The latency of the first load is the average latency of the requests of an input; the input with the
    largest average counts.
    """
    requests, port, pages, first_latency, sent = 0.0, 0.0, 0.0, 0.0, 0.0
    for o in range(problem.operand_count):
        if not requests_memory(problem, o):
            continue
        is_store = o == OUTPUT_INDEX
        top = problem.level_count[o] - 1
        first = load_boundary(problem, ws, o, calls)
        latency = request_latency(problem, ws, o, first, is_store)
        rows, row, whole = rows_of_tile(problem, ws, o, first)
        loads = 1.0
        for i in range(first, ws.loop_count):
            if not is_store or problem.kind[o, ws.loop_dimension[i]] != IRRELEVANT:
                loads *= ws.loop_size[i]
        bursts = loads * rows * words_of_row(row, whole, problem.burst_bits)
        if is_store:
            transfers = STORES_OF_A_MISS if problem.cache_count > 0 else 1
            requests += transfers * bursts * latency / problem.requests_in_flight
            if problem.store_latency_cycles > 0:
                width = problem.store_burst_bits if problem.store_burst_bits > 0 else problem.burst_bits
                stores = loads * rows * words_of_row(row, whole, width)
                requests += stores * problem.store_latency_cycles / problem.requests_in_flight
                sent += stores
            else:
                sent += bursts
            continue
        sent += bursts
        requests += bursts * latency / problem.requests_in_flight
        width = problem.bandwidth_max_bits[o, top, TL]
        if width > 0:
            port += loads * rows * words_of_row(row, whole, width)
        if problem.page_bits > 0:
            pages += loads * rows * min(1.0, whole / problem.page_bits) * problem.page_cycles
        first_latency = max(first_latency, latency)
    return max(requests + problem.word_cycles * port, port) + pages, first_latency, sent


@kernel
def command_cycles(problem, ws, calls):
    """Triple (cycles in which the array executes the commands of one call, lower limit on the cycles of one call,
    number of commands of one call). The lower limit follows from the largest number of commands in flight; without this
    number in the hardware file, the limit is 0. Without the size of commands in the hardware file, the call is one
    command, and the limit is 0.

    A call consists of the `calls` innermost loops. A command covers at most `command_iterations` iterations of the
    loops over the dimensions in `command_dimension`, or of the innermost loop if no such dimension is given.
    """
    total = iterations(ws, 0, calls) * problem.cycles_per_operation
    if problem.command_iterations == 0:
        return total, 0.0, 1.0
    run = 1.0
    for i in range(calls):
        if problem.command_dimension[ws.loop_dimension[i]]:
            run *= ws.loop_size[i]
    if problem.command_dimension_count == 0 and calls > 0:
        run = float(ws.loop_size[0])
    longest = float(problem.command_iterations)
    commands = math.ceil(run / longest)
    last = run - (commands - 1) * longest
    least = problem.least_command_cycles
    each = problem.cycles_per_operation
    busy = (commands - 1) * max(least, longest * each) + max(least, last * each)
    runs = iterations(ws, 0, calls) / run
    waiting = 0.0
    if problem.commands_in_flight > 0:
        waiting = runs * (commands * problem.command_latency_cycles + busy) / problem.commands_in_flight
    return runs * busy, waiting, runs * commands


@kernel
def cycles_in_turn(problem, count, call, commands_of_call, requests, sent):
    """Cycles of all calls if `calls_in_flight` calls are always under way. A call makes room for the next call as soon
    as its requests are sent and its last commands are in the queue.

    `count` is the number of calls. `call` is the number of cycles in which the array executes a call, and
    `commands_of_call` is its number of commands. `requests` has the cycles of all requests, and `sent` is their number.
    When a call makes room, its last `queued_commands` commands and its last `requests_in_flight` requests are still
    under way.
    """
    executing = call * max(0.0, 1.0 - problem.queued_commands / commands_of_call)
    sending = 0.0
    if sent > 0:
        sending = requests * max(0.0, 1.0 - problem.requests_in_flight * count / sent)
    return (count * (problem.call_cycles + executing) + sending) / problem.calls_in_flight


@kernel
def add_waiting(problem, ws):
    """Raise the latency in `ws.totals` to the largest of the lower limits that calls, commands and requests set. A
    latency above the largest limit does not change.

    The increase is rounded up to whole cycles and written to the element of `ws.waiting` that belongs to the largest
    limit. The other elements are 0. If the latency does not change, all elements are 0. After that, the cycles before
    the first call are added to the latency and to the element of calls.
    """
    for t in range(WAITING_COUNT):
        ws.waiting[t] = 0.0
    calls = call_boundary(problem, ws)
    count = iterations(ws, calls, ws.loop_count)
    busy, waiting, commands_of_call = command_cycles(problem, ws, calls)
    requests, latency, sent = 0.0, 0.0, 0.0
    if problem.request_memory >= 0:
        requests, latency, sent = request_cycles(problem, ws, calls)
    has_queue = problem.queued_commands > 0
    limit, term = 0.0, REQUEST_WAITING
    if problem.request_memory >= 0:
        limit = requests
    if problem.command_iterations > 0:
        commands = count * max(busy, waiting)
        if not problem.has_calls:
            # With calls, the loads of one call are added below.
            commands += ws.totals[ONLOADING] + ws.totals[OFFLOADING]
        if commands > limit:
            limit, term = commands, COMMAND_WAITING
    if problem.has_calls:
        issued = count * problem.call_cycles
        in_turn = 0.0
        if problem.calls_in_flight > 0 and has_queue:
            in_turn = cycles_in_turn(problem, count, max(busy, waiting), commands_of_call, requests, sent)
        elif problem.calls_in_flight > 0:
            one = problem.call_cycles + latency + problem.command_latency_cycles
            in_turn = (count * (one + max(busy, waiting)) + requests) / problem.calls_in_flight
        if max(issued, in_turn) > limit:
            limit, term = max(issued, in_turn), CALL_WAITING
        if has_queue and term == REQUEST_WAITING:
            limit += latency + max(busy, waiting)  # the last call executes after the last load
        else:
            limit += latency + requests / count
    added = math.ceil(limit - ws.totals[LATENCY])
    if added > 0:
        ws.waiting[term] = float(added)
        ws.totals[LATENCY] += float(added)
    start = math.ceil(problem.start_cycles)
    if start > 0:
        ws.waiting[CALL_WAITING] += float(start)
        ws.totals[LATENCY] += float(start)
