"""Work of attention on GPUs in fused kernels, which compute tiles of scores and never write the scores to memory.

A kernel cuts the new tokens of a sequence into tiles of query rows, and the keys into tiles of keys. A thread block
handles one head of one tile of query rows. It computes all tiles of keys that these rows see, one after the other. A
tile with fewer rows or keys takes as long as a full tile. Decoding has only one row, so it is slow in a kernel for many
rows. A multiprocessor runs one thread block at a time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from tilewright_evidence.court.case import Values
from tilewright_evidence.court.gpu import LARGEST_PART, Gpu, added_up

ELEMENT_BYTES = 2
OPERATIONS = 4
"""Number of operations for one score and one element of a head. There are two matrix products, each with a
multiplication and an addition.
"""
SPLITS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Numbers of parts into which a kernel can cut the keys of a sequence."""
KERNEL = "kernel_us"
"""Name of a constant: the time that a call takes in addition to the work of its thread blocks."""
MEANINGS = (
    ("tensor_share", "", "share of the peak that a thread block reaches in a tile of scores", 0.05, 1.0),
    ("block_us", "us", "time to begin and end a thread block", 0.2, 10.0),
    (KERNEL, "us", "time of a call without the work of its thread blocks", 1.0, 20.0),
)


@dataclass(frozen=True)
class AttentionKernel:
    """Kernel of attention in a framework."""

    rows: int
    """Query rows of a tile."""
    keys: int
    """Keys of a tile."""
    most_packed: int = 1
    """Largest number of query heads with common keys that are packed into one tile. If more heads have the same keys,
    each tile has queries of one head.
    """
    splits: bool = False
    """True if the kernel can cut the keys of a sequence into parts, which thread blocks compute at the same time. A
    second kernel then adds the parts.
    """
    has_heads_outermost: bool = False
    """True if all thread blocks of a head run before those of the next head. With many sequences, heads that share keys
    then run at different times, and read the keys from the DRAM several times.
    """


@dataclass(frozen=True)
class HeadsOfCall:
    """Heads of attention on one device."""

    query: int
    key_value: int
    width: int

    @property
    def group(self) -> int:
        """Number of query heads that share keys and values."""
        return self.query // self.key_value


@dataclass(frozen=True)
class AlikeSequences:
    """Sequences of a call that count as equal."""

    count: int
    new_tokens: int
    """Number of tokens of a sequence whose attention is computed in this call."""
    tokens: float
    """Number of all tokens of a sequence, including the new tokens. If the source has only the sum over the sequences,
    it is the mean.
    """

    def pairs(self) -> float:
        """Number of pairs of a new token and a token that it sees, in all sequences."""
        seen = self.new_tokens * (self.tokens - self.new_tokens) + self.new_tokens * (self.new_tokens + 1) / 2
        return self.count * seen


@dataclass(frozen=True)
class AttentionPart:
    """Attention of sequences that count as equal, with the numbers that determine its time. Its arrays have the shape
    (choices,). A choice is a number of parts into which the keys are cut.
    """

    flops: float
    kv_bytes: float
    """Bytes of keys and values, each moved once."""
    other_bytes: float
    """Bytes of queries and outputs."""
    reads: float
    """Number of times that keys and values come from the DRAM."""
    waves: np.ndarray
    """Number of thread blocks that one multiprocessor runs one after the other."""
    tiles: np.ndarray
    """Tiles of scores that one multiprocessor computes one after the other."""
    is_split: np.ndarray
    tile_flops: float
    """Operations of a full tile."""

    def seconds(self, gpu: Gpu, constants: Values) -> tuple[float, dict[str, float]]:
        """Pair (time of the part in seconds, without the time of the call; times by part of the machine). The time is
        that of the fastest choice.
        """
        rate = gpu.flops_per_s["bf16"] / gpu.multiprocessors * constants["tensor_share"]
        blocks = self.waves * constants["block_us"] * 1e-6
        tensor = self.tiles * self.tile_flops / rate
        moved = self.reads * self.kv_bytes + self.other_bytes
        dram = np.full_like(tensor, moved / (gpu.dram_bytes_per_s * constants["memory_efficiency"]))
        times = added_up([blocks + tensor, dram]) + np.where(self.is_split, constants["launch_us"] * 1e-6, 0.0)
        best = int(np.argmin(times))
        parts = {"blocks": blocks, "tensor cores": tensor, "DRAM": dram}
        return float(times[best]), {name: float(found[best]) for name, found in parts.items()}


def attention_part(gpu: Gpu, heads: HeadsOfCall, kernel: AttentionKernel, alike: AlikeSequences) -> AttentionPart:
    """Attention of the sequences `alike`. If they have less than one token each, no thread block has work."""
    is_packed = alike.new_tokens == 1 and 1 < heads.group <= kernel.most_packed
    row_tiles = ceil(alike.new_tokens / kernel.rows)
    history = alike.tokens - alike.new_tokens
    seen = np.floor(np.minimum(alike.tokens, history + (np.arange(row_tiles) + 1) * kernel.rows))
    key_tiles = np.ceil(seen / kernel.keys)
    of_heads = heads.key_value if is_packed else heads.query
    blocks = alike.count * of_heads * row_tiles if alike.tokens >= 1 else 0
    splits = np.array([one for one in SPLITS if one == 1 or (kernel.splits and one <= key_tiles.max())])
    waves = np.ceil(blocks * splits / gpu.multiprocessors)
    mean = np.where(splits > 1, np.ceil(key_tiles.mean() / splits), key_tiles.mean())
    tiles = np.maximum(waves * mean, np.ceil(key_tiles.max() / splits) * min(blocks, 1))
    vectors = ELEMENT_BYTES * heads.width * alike.count
    kv_bytes = 2.0 * vectors * heads.key_value * alike.tokens
    together = min(max(gpu.multiprocessors / alike.count, 1.0), heads.group)
    is_read_again = kernel.has_heads_outermost and alike.new_tokens == 1 and kv_bytes > gpu.l2_bytes
    return AttentionPart(
        flops=OPERATIONS * heads.width * heads.query * alike.pairs(),
        kv_bytes=kv_bytes,
        other_bytes=2.0 * vectors * heads.query * alike.new_tokens if blocks else 0.0,
        reads=heads.group / together if is_read_again else 1.0,
        waves=waves,
        tiles=tiles,
        is_split=splits > 1,
        tile_flops=float(OPERATIONS * kernel.rows * kernel.keys * heads.width),
    )


@dataclass(frozen=True)
class AttentionCall:
    """Call of a kernel, for sequences of one or two kinds: a chunk of a prompt, and sequences that decode. Its time is
    the sum of the times of both kinds.
    """

    gpu: Gpu
    parts: Sequence[AttentionPart]

    @property
    def flops(self) -> float:
        """Operations of the call."""
        return sum(part.flops for part in self.parts)

    @property
    def kv_bytes(self) -> float:
        """Bytes of keys and values, each moved once."""
        return sum(part.kv_bytes for part in self.parts)

    @property
    def bound(self) -> float:
        """Lower bound of the time in us. Keys and values that the L2 can hold do not count."""
        kept = max(0.0, self.kv_bytes - self.gpu.l2_bytes)
        return max(self.roofline_terms[0], 1e6 * kept / self.gpu.dram_bytes_per_s)

    @property
    def roofline_terms(self) -> tuple[float, float, float]:
        """Triple (time to compute at the peak in us, time to move all bytes once in us, number of calls)."""
        moved = self.kv_bytes + sum(part.other_bytes for part in self.parts)
        return 1e6 * self.flops / self.gpu.flops_per_s["bf16"], 1e6 * moved / self.gpu.dram_bytes_per_s, 1.0

    def microseconds(self, constants: Values) -> tuple[float, str]:
        """Pair (time of the call in us, name of the part of the machine that limits it). The name is `kernel` if the
        time of the call without its thread blocks is more than the share LARGEST_PART of the time.
        """
        found = [part.seconds(self.gpu, constants) for part in self.parts]
        total = constants[KERNEL] + 1e6 * sum(seconds for seconds, _ in found)
        if constants[KERNEL] > LARGEST_PART * total:
            return total, "kernel"
        names = found[0][1]
        return total, max(names, key=lambda name: sum(times[name] for _, times in found))
