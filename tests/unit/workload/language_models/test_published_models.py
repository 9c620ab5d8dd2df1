"""Published configurations: parameters to the digit, and work, weights and caches equal to plain formulas."""

import random

import pytest
from tilewright.base.operator_groups import MAC_ARRAY
from tilewright.workload.graph import Workload
from tilewright.workload.language_models.architecture import Mixture
from tilewright.workload.language_models.model import expert_loads, language_model_workload
from tilewright.workload.language_models.request import ABSORBED, BALANCED, EXPANDED, ModelStep, Requests
from tilewright.workload.language_models.weights import active_parameter_count, kept_numbers, parameter_count

from tests.unit.workload.language_models.models import FOLDER, PUBLISHED, fields_of, model_of
from tests.unit.workload.language_models.plain_counts import kept_numbers as plain_kept
from tests.unit.workload.language_models.plain_counts import multiply_accumulates

STEPS: dict[str, tuple[Requests, ...]] = {
    "prompt": (Requests(1, 300, 0),),
    "odd prompt": (Requests(1, 5001, 0),),
    "chunk": (Requests(2, 128, 4100),),
    "one token": (Requests(1, 1, 5000),),
    "batch": (Requests(7, 1, 1023),),
    "mix": (Requests(1, 64, 0), Requests(3, 1, 777)),
}


def step_of(groups: tuple[Requests, ...]) -> ModelStep:
    """The step that a workload file without further keys describes."""
    one_token = all(group.tokens == 1 for group in groups)
    return ModelStep(groups, latent=ABSORBED if one_token else EXPANDED)


def macs_of(workload: Workload) -> int:
    """Multiply-accumulates; a repeated layer counts as often as its number of repeats."""
    nodes = (node for node in workload.nodes if node.layer is not None and node.unit == MAC_ARRAY)
    return sum(node.layer.mac_count * node.repeats for node in nodes if node.layer is not None)


def each_request(groups: tuple[Requests, ...]) -> list[tuple[int, int]]:
    """(new tokens, cached tokens) of every request."""
    return [(group.tokens, group.context) for group in groups for _ in range(group.count)]


def test_every_configuration_is_checked() -> None:
    """The folder has the models of the table and no others."""
    assert {path.stem for path in FOLDER.glob("*.json")} == set(PUBLISHED)


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_those_that_are_published(name: str) -> None:
    """The number of parameters equals the published one to the digit."""
    assert parameter_count(model_of(fields_of(name), name)) == PUBLISHED[name]


def test_active_parameters_leave_out_experts_that_a_token_does_not_meet() -> None:
    """Active parameters of Mixtral leave out six of eight experts with three matrices each, in 32 layers."""
    fields = fields_of("mixtral-8x7b-v0.1")
    unused = 32 * 6 * 3 * fields["hidden_size"] * fields["intermediate_size"]
    assert active_parameter_count(model_of(fields)) == PUBLISHED["mixtral-8x7b-v0.1"] - unused


@pytest.mark.parametrize("groups", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("name", PUBLISHED)
def test_multiply_accumulates_are_those_that_are_needed(name: str, groups: tuple[Requests, ...]) -> None:
    """Multiply-accumulates equal the plain count, without hidden pairs of query and key behind causal masks and
    windows.
    """
    if name == "gpt2" and groups[0].context + groups[0].tokens > 1024:
        groups = (groups[0].__class__(groups[0].count, min(groups[0].tokens, 512), 100),)
    workload = language_model_workload(model_of(fields_of(name)), step_of(groups))
    assert macs_of(workload) == multiply_accumulates(fields_of(name), each_request(groups))


@pytest.mark.parametrize("name", PUBLISHED)
def test_weights_that_are_read_are_the_parameters(name: str) -> None:
    """Every weight is a tensor of the workload, once for each layer that has it, if all experts have tokens."""
    model = model_of(fields_of(name))
    step = ModelStep((Requests(1, 512, 0),), experts=BALANCED)
    workload = language_model_workload(model, step)
    read: dict[str, int] = {}
    for node in workload.nodes:
        read |= {one: node.repeats for one in node.inputs if workload.tensor_of[one].is_constant}
    copies = read.pop("lm_head.weight") if model.is_tied else 0
    assert copies == (1 if model.is_tied else 0)
    assert sum(workload.tensor_of[one].element_count * count for one, count in read.items()) == PUBLISHED[name]


@pytest.mark.parametrize("groups", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("name", PUBLISHED)
def test_what_is_kept_of_tokens(name: str, groups: tuple[Requests, ...]) -> None:
    """Keys and values, latent vectors or states after the step have the plain size, in the precision of the cache."""
    model = model_of(fields_of(name))
    step = step_of(groups)
    workload = language_model_workload(model, step)
    repeats = {tensor: node.repeats for node in workload.nodes for tensor in node.outputs}
    kept = 0
    for output in workload.outputs:
        if "cache" in output or output.rpartition("/")[2] in ("state", "conv_state"):
            once = model.blocks[0].feed_forward is None and output.endswith("/state")
            kept += workload.tensor_of[output].element_count * (len(model.blocks) if once else repeats[output])
            assert workload.tensor_of[output].bits == step.precision.cache
    assert kept == plain_kept(fields_of(name), each_request(groups))


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_is_kept_of_a_request(name: str) -> None:
    """The cache of a request is as large as after a step with one new token.

    With a window, the cache holds only what the next token sees.
    """
    model = model_of(fields_of(name))
    assert kept_numbers(model, 1000) == plain_kept(fields_of(name), [(1, 999)])


def test_experts_get_all_tokens_of_the_router() -> None:
    """Each token goes to `experts_per_token` experts, whether tokens spread as expected or evenly."""
    mixture = model_of(fields_of("deepseek-v3")).blocks[-1].feed_forward
    assert isinstance(mixture, Mixture)
    for tokens in (1, 2, 3, 17, 256, 4096):
        for load in ("expected", "balanced"):
            loads = expert_loads(mixture, tokens, load)
            assert sum(size * count for size, count in loads.items()) == tokens * mixture.experts_per_token
            assert sum(loads.values()) <= mixture.experts
            assert max(loads) <= tokens
    assert expert_loads(mixture, 1, "expected") == {1: 8}


def test_experts_that_meet_a_token_are_as_many_as_on_average() -> None:
    """The expected number of experts that meet a token equals the mean of random routing."""
    mixture = model_of(fields_of("mixtral-8x7b-v0.1")).blocks[0].feed_forward
    assert isinstance(mixture, Mixture)
    generator = random.Random(1)
    for tokens in (3, 5, 9):
        met = [len({expert for _ in range(tokens) for expert in generator.sample(range(8), 2)}) for _ in range(2000)]
        assert sum(expert_loads(mixture, tokens, "expected").values()) == round(sum(met) / len(met))
