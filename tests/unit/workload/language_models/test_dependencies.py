"""Dependencies of attention with cache, mask and window: the index maps cover every true dependency."""

import itertools
from collections.abc import Mapping

import pytest
from tilewright.workload.access import IndexMap, TensorAccess
from tilewright.workload.graph import Workload
from tilewright.workload.language_models.model import language_model_workload
from tilewright.workload.language_models.request import ModelStep, Requests

from tests.unit.workload.language_models.models import model_of

Element = tuple[str, tuple[int, ...]]
FIELDS = {
    "model_type": "mistral",
    "hidden_size": 2,
    "intermediate_size": 2,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "vocab_size": 3,
    "head_dim": 2,
}


def place(access: TensorAccess, at: Mapping[str, int], shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The element that an access reads or writes; None outside of the tensor."""
    index = tuple(axis.offset + sum(c * at[name] for name, c in axis.terms) for axis in access.axes)
    return index if all(0 <= i < size for i, size in zip(index, shape, strict=True)) else None


def read_by(workload: Workload, one: IndexMap) -> list[tuple[Element, Element]]:
    """(output element, input element) pairs of a map."""
    names = [name for name, _ in one.loops]
    shapes = [workload.tensor_of[access.tensor].shape for access in (one.output, one.input)]
    found = []
    for values in itertools.product(*(range(size) for _, size in one.loops)):
        at = dict(zip(names, values, strict=True))
        made, read = place(one.output, at, shapes[0]), place(one.input, at, shapes[1])
        if made is not None and read is not None:
            found.append(((one.output.tensor, made), (one.input.tensor, read)))
    return found


def sources_of(workload: Workload) -> dict[Element, frozenset[Element]]:
    """Element -> elements of the cache, and of the new keys and values, that it depends on."""
    found: dict[Element, frozenset[Element]] = {}
    for node in workload.nodes:
        if "attention/" not in node.name or node.name.endswith("o_proj"):
            continue
        made: dict[Element, set[Element]] = {}
        for one in node.index_maps:
            for output, source in read_by(workload, one):
                made.setdefault(output, set()).update(found.get(source, {source} if is_followed(source[0]) else ()))
        for element, sources in made.items():
            followed = {element} if element[0].endswith(("k_rotary.out", "v_proj.out", "q_rotary.out")) else sources
            found[element] = frozenset(followed)
    return found


def is_followed(tensor: str) -> bool:
    """Whether a tensor is a cache from before the step."""
    return tensor.endswith(".before")


@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize(("tokens", "context"), [(1, 4), (4, 0), (5, 2), (3, 5), (6, 4)])
def test_every_token_depends_on_all_keys_and_values_that_it_sees(tokens: int, context: int, window: int | None) -> None:
    """Every token of two separate requests depends on all keys and values that it sees, and on its own query."""
    fields = FIELDS | ({"sliding_window": window} if window else {})
    # Blocks of windows that stand once for several have the dependencies of the first.
    step = ModelStep((Requests(2, tokens, context),), is_written_out=True)
    workload = language_model_workload(model_of(fields), step)
    found = sources_of(workload)
    output = next(node for node in workload.nodes if node.name.endswith("o_proj")).inputs[0]
    base = 0 if window is None else max(0, context - window + 1)
    for request in range(2):
        for new in range(tokens):
            row = request * tokens + new
            sources = found[output, (row, 0)]
            for key in range(base, context + new + 1):
                if window is not None and key <= context + new - window:
                    continue
                for kind, made in (("key", "k_rotary.out"), ("value", "v_proj.out")):
                    channel = 0
                    if key < context:
                        name = f"layers.0/attention/{kind}_cache.before"
                        assert (name, (request, 0, key - base, channel)) in sources
                    else:
                        assert (f"layers.0/attention/{made}", (request * tokens + key - context, channel)) in sources
            assert ("layers.0/attention/q_rotary.out", (row, 0)) in sources


def test_pairs_that_the_mask_hides_are_no_dependencies_of_a_single_token() -> None:
    """A window cuts the cache for a single token: keys outside of it are not even kept."""
    workload = language_model_workload(model_of(FIELDS | {"sliding_window": 3}), ModelStep((Requests(1, 1, 9),)))
    assert workload.tensor_of["layers/attention/key_cache.before"].shape == (1, 1, 2, 2)
    assert workload.tensor_of["layers/attention/scores.out"].shape == (1, 1, 2, 1, 3)
