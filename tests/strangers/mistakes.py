"""One mistake in a document, chosen by a seed: a misspelt word, a moved or repeated key, or a key of another tool."""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

OF_OTHER_TOOLS = {
    "zigzag": ("r_bw", "w_bw", "r_port", "w_port", "rw_port", "min_r_granularity", "double_buffering_support"),
    "zigzag 2": ("core_allocation", "operand_source_dimension_mapping", "constant_operands", "loop_dim_size"),
    "stream 1": ("intra_core_tiling", "inter_core_tiling", "cores_graph", "dataflows", "offchip_core_id"),
    "stream 2": ("kernel", "fused_groups", "layers", "utilization", "memory_type", "type", "core_coordinates"),
    "timeloop": ("architecture", "subtree", "local", "class", "attributes", "meshX", "depth", "width", "datawidth"),
    "timeloop mapping": ("target", "factors", "permutation", "bypass", "keep", "constraints", "version"),
    "accelforge": ("nodes", "leak_power", "total_latency", "tensors", "actions", "rank_sizes", "einsums", "spatial"),
}
"""Tool -> keys of its files; tilewright has some of these keys elsewhere."""
LETTERS = "abcdefghijklmnopqrstuvwxyz_"
Path = tuple[str | int, ...]
_OF_ALL = ("bandwidth", "energy_per_bit")
"""Keys of a link that may also stand at the top of an accelerator, for all links."""


@dataclass(frozen=True)
class Mistake:
    """A mistake in a document."""

    what: str
    """Kind of mistake: misspelt key, misspelt name, moved, repeated, or the tool to which a key belongs."""
    words: tuple[str, ...]
    """Words of which a message on the mistake has at least one."""
    text: str | bytes
    """The document with the mistake; for an ONNX file, its bytes."""

    def is_named_in(self, line: str) -> bool:
        """Whether a line has one of the words."""
        named = "|".join(rf"(?<!\w){re.escape(word)}(?!\w)" for word in self.words if word)
        return re.search(named, line) is not None


def places(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value of a document with its path."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in pairs:
        yield (*path, key), item
        yield from places(item, (*path, key))


def at(value: Any, path: Path) -> Any:
    """The value at a path."""
    for key in path:
        value = value[key]
    return value


def misspelt(word: str, chance: random.Random) -> str:
    """The word with one letter left out, doubled, changed, or exchanged with the next."""
    place = chance.randrange(len(word))
    other = chance.choice(LETTERS)
    made = chance.choice(
        (
            word[:place] + word[place + 1 :],
            word[:place] + word[place] + word[place:],
            word[:place] + other + word[place + 1 :],
            word[:place] + word[place + 1 : place + 2] + word[place : place + 1] + word[place + 2 :],
        )
    )
    # A blank more or less is no mistake, nor a slash in a path, and 72_um2 is 72 um2.
    return made if _bare(made) not in ("", _bare(word)) else word + other


def _bare(word: str) -> str:
    return "".join(word.replace("_", " ").replace("/", " ").split())


def mistake(data: Any, seed: int) -> Mistake:
    """The mistake of a seed in a document; the document itself is not changed."""
    chance = random.Random(seed)
    made = yaml.safe_load(yaml.safe_dump(data, sort_keys=False))
    # A sweep is called as one likes.
    keys = [path for path, _ in places(made) if isinstance(path[-1], str) and path[:-1] != ("sweeps",)]
    names = [path for path, item in places(made) if isinstance(item, str) and item.strip() and len(item) > 1]
    kind = chance.choice(("key", "name", "name", "moved", "repeated", "tool"))
    if kind == "name" and names:
        path = chance.choice(names)
        word = at(made, path)
        other = misspelt(word, chance)
        at(made, path[:-1])[path[-1]] = other
        parts = [part for text in (other, word) for part in text.split(", ")]
        return Mistake("misspelt name", (word, other, *parts, str(path[-1])), dumped(made))
    if kind == "tool":
        tool = chance.choice(list(OF_OTHER_TOOLS))
        key = chance.choice(OF_OTHER_TOOLS[tool])
        tables = [path for path, item in places(made) if isinstance(item, dict)]
        table = at(made, chance.choice([(), *tables] if isinstance(made, dict) else tables))
        if key not in table:
            table[key] = chance.choice((8, "x", [1, 2], {"a": 1}))
            return Mistake(tool, (key,), dumped(made))
    path = chance.choice(keys)
    key, table = str(path[-1]), at(made, path[:-1])
    if kind == "moved":
        others = [other for other, item in [((), made), *places(made)] if isinstance(item, dict)]
        others = [other for other in others if other[: len(path)] != path and key not in at(made, other)]
        # What a run says may stand at the top of a configuration, and the other way round.
        ends = {"runs", "sweeps"} & {*path[:1]}
        others = [other for other in others if ends == {"runs", "sweeps"} & {*other[:1]}]
        if others and key not in _OF_ALL:
            target = at(made, chance.choice(others))
            target[key] = table.pop(key)
            return Mistake("moved", (key,), dumped(made))
    if kind == "repeated":
        return Mistake("repeated", (key,), repeated(made, path, chance))
    other = misspelt(key, chance)
    renamed = {other if name == key else name: item for name, item in table.items()}
    table.clear()
    table.update(renamed)
    return Mistake("misspelt key", (key, other), dumped(made))


_MARK = "a-key-that-is-given-twice"


def repeated(made: Any, path: Path, chance: random.Random) -> str:
    """The document with a key given twice; the first time, its value differs and has no effect."""
    table, key = at(made, path[:-1]), path[-1]
    first = {_MARK: chance.choice((1, 77, "x", [3])), **table}
    table.clear()
    table.update(first)
    return dumped(made).replace(_MARK, str(key))


def dumped(data: Any) -> str:
    """A document as YAML."""
    return str(yaml.safe_dump(data, sort_keys=False))
