"""Random keys for zeros and for rules of the control, in the content of hardware files."""

import copy
import random
from typing import Any

LOOPS = ("B", "K", "C", "OY", "OX", "FY", "FX", "G", "D", "H")
"""Loop dimensions of the layers of small networks."""
ZEROS = (0.0, 0.25, 0.5, 0.9, 1.0)
MOST_ORDERS = 4


def random_shares(rng: random.Random) -> dict[str, float]:
    """Random shares of zeros of an ONNX network, by kind of data."""
    return {kind: rng.choice(ZEROS) for kind in ("weights", "activations", "outputs") if rng.random() < 0.7}


def with_random_keys(rng: random.Random, hardware: dict[str, Any]) -> dict[str, Any]:
    """The hardware file with some of the keys; topmost memories have fewer rules, so that some mappings are left."""
    result = copy.deepcopy(hardware)
    array, memories = result["operational_array"], result["memories"]
    if rng.random() < 0.5:
        array["zero_gating"] = random_gating(rng)
    if rng.random() < 0.4:
        array["unrolled_dimensions"] = {
            side: [loop for loop in LOOPS if rng.random() < 0.7] for side in array["dimensions"] if rng.random() < 0.7
        } or {array["dimensions"][0]: list(LOOPS)}
    ordered = 0
    for place, memory in enumerate(memories.values()):
        is_top = place == len(memories) - 1
        if rng.random() < 0.3:
            memory["run_length"] = random_code(rng, memory["operands"])
        if rng.random() < (0.15 if is_top else 0.4):
            memory["tile_dimensions"] = [loop for loop in LOOPS if rng.random() < (0.9 if is_top else 0.7)]
        if rng.random() < 0.2 and ordered < MOST_ORDERS:
            memory["loop_order"] = rng.sample(LOOPS, rng.randint(2, 5))
            ordered += 1
    return result


def random_gating(rng: random.Random) -> dict[str, list[str]]:
    """A random value of `zero_gating`."""
    stopping = rng.choice((["I1"], ["I2"], ["I1", "I2"]))
    read = [operand for operand in ("I1", "I2") if set(stopping) - {operand} and rng.random() < 0.6]
    return {"operands": stopping} | ({"reads_of": read} if read else {})


def random_code(rng: random.Random, operands: list[str]) -> dict[str, Any]:
    """A random value of `run_length` for a memory.

    In some codes only narrow elements fit; others need wide ports.
    """
    run_bits, pairs = rng.choice((1, 3, 5)), rng.choice((1, 3))
    bits = rng.choice((8, 16, 16, 32, 128))
    chosen = [operand for operand in operands if rng.random() < 0.8] or operands[:1]
    return {"operands": chosen, "run_bits": run_bits, "pairs": pairs, "word": pairs * (run_bits + bits) + 1}
