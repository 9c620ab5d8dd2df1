"""Profiles for serving simulators: operator times of a language model on one core, by tokens and keys.

Every layer of a block belongs to one operator. The operator times of a step therefore add up to the time that `map`
gives for the step. An attention time is either for prompts or for further tokens. If a step has both prompts and
further tokens, the simulator adds these two times.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from tilewright import __version__
from tilewright.base.errors import InputError, Problem, Problems
from tilewright.base.json_values import JsonObject
from tilewright.base.yamlfile import yaml_text
from tilewright.hardware.core import Core
from tilewright.hardware.physical_rates import CLOCK_KEY
from tilewright.hardware.static_power import clock_period_ns
from tilewright.peers.llmservingsim import points as names
from tilewright.peers.llmservingsim.points import ProfileLimits, TimedPoints
from tilewright.peers.llmservingsim.releases import (
    BUNDLE,
    Described,
    check_model,
    check_names,
    files_of,
    mixture_of,
    points_of,
)
from tilewright.tokens.layer_figures import LayerFigures
from tilewright.tokens.steps import LATENCY
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.language_models.architecture import Architecture, Attention, Mixture
from tilewright.workload.language_models.model import language_model_workload
from tilewright.workload.language_models.reader import DescribedModel
from tilewright.workload.language_models.request import EXPECTED, Precision, Requests

_OPERATORS = tuple(
    (re.compile(pattern), operator)
    for pattern, operator in (
        (r"embed_.*", names.EMBEDDING),
        (r"layers/input_norm\..*", names.INPUT_NORM),
        (r"layers/attention/q_proj(\.scale)?", names.QUERIES),
        (r"layers/attention/k_proj(\.scale)?", names.KEYS),
        (r"layers/attention/v_proj(\.scale)?", names.VALUES),
        (r"layers/attention/o_proj(\.scale)?", names.OUTPUTS),
        (r"layers/attention/[qk]_norm\..*", names.HEAD_NORMS),
        (r"layers/attention/[qk]_rotary\..*", names.POSITIONS),
        (r"layers/attention/.*", names.ATTENTION),
        (r"layers/attention_residual", names.ATTENTION_SUM),
        (r"layers/post_attention_norm\..*", names.POST_NORM),
        (r"layers/feedforward/router.*", names.ROUTER),
        (r"layers/feedforward/(shared_)?experts.*", names.EXPERTS),
        (r"layers/feedforward/gate_proj(\.scale)?", names.GATE),
        (r"layers/feedforward/up_proj(\.scale)?", names.UP),
        (r"layers/feedforward/(activation|gated)", names.ACTIVATION),
        (r"layers/feedforward/down_proj(\.scale)?", names.DOWN),
        (r"layers/feedforward_residual", names.FEED_FORWARD_SUM),
        (r"norm\..*", names.FINAL_NORM),
        (r"(lm_head(\.scale)?|logits_cap)", names.HEAD),
    )
)
_OF_EXPERT = {"gate_proj": names.GATE, "up_proj": names.UP, "activation": names.ACTIVATION, "gated": names.ACTIVATION}
_OF_EXPERT |= {"down_proj": names.DOWN, "weighted": names.DOWN, "sum": names.DOWN}
_AT_ONCE = 5
"""Number of steps whose layers are searched together.

A larger number would take longer, and would not use more threads. In a network, `map` compares all pairs of layers to
find data that stay on chip between them. Layers of different steps have no common data, so these comparisons would be
useless.
"""


def operator_of(name: str) -> str:
    """Operator to which a layer of a step belongs. Raises ValueError for an unknown layer."""
    for pattern, operator in _OPERATORS:
        if pattern.fullmatch(name):
            return operator
    raise ValueError(f"layer {name} belongs to no operator")


@dataclass
class OperatorCosts:
    """Times of the operators of a model on a core with a clock. All blocks of the model are equal."""

    described: DescribedModel
    figures: LayerFigures
    period_ns: float
    key_block: int | None = None
    """Number of keys that attention processes at a time; None for all keys at once."""
    _rows: dict[tuple[str, int], float] = field(default_factory=dict)

    @property
    def model(self) -> Architecture:
        """Model with only one block. One block is enough, because all blocks have equal costs."""
        return replace(self.described.model, blocks=self.described.model.blocks[:1])

    @property
    def _mixture(self) -> Mixture:
        part = self.described.model.blocks[0].feed_forward
        assert isinstance(part, Mixture)
        return part

    def search(self, points: TimedPoints) -> None:
        """Search mappings for the layers of all points. The layers of several points are searched together.

        Raises MappingError with the names of all layers for which no mapping fits.
        """
        waiting: list[Workload] = []
        for step in self._steps(points):
            waiting.append(step)
            if len(waiting) == _AT_ONCE:
                self.figures.search(waiting)
                waiting = []
        self.figures.search(waiting)

    def rows_ns(self, operator: str, rows: int) -> float:
        """Time in ns of an operator for `rows` tokens. The operator processes each token separately."""
        if (operator, rows) not in self._rows:
            step = self._row_step(rows)
            self._rows |= {(one, rows): self._ns(_of_operators(step, one)) for one in names.BY_ROWS}
        return self._rows[operator, rows]

    def prompt_ns(self, tokens: int, context: int) -> float:
        """Time in ns of attention for a prompt: `tokens` new tokens of one request with `context` cached tokens."""
        return self._ns(self._attention(Requests(1, tokens, context)))

    def answers_ns(self, requests: int, context: int) -> float:
        """Time in ns of attention for a decode step: one new token for each of `requests` requests with `context`
        cached tokens each.
        """
        return self._ns(self._attention(Requests(requests, 1, context)))

    def expert_ns(self, operator: str, rows: int) -> float:
        """Time in ns of an operator in a single expert, for `rows` tokens."""
        step = self._expert_step(rows)
        return self._ns(_layers(step, lambda node: _OF_EXPERT[_part_of(node.name)] == operator))

    def mixture_ns(self, tokens: int, experts: int) -> float:
        """Time in ns of the whole mixture of experts, if the tokens are spread evenly over `experts` experts."""
        return self._ns(self._mixture_step(tokens, experts))

    def _steps(self, points: TimedPoints) -> Iterator[Workload]:
        yield from map(self._row_step, points.rows)
        yield from (self._attention(Requests(1, *point)) for point in points.prompts)
        yield from (self._attention(Requests(count, 1, context)) for count, context in points.answers)
        yield from map(self._expert_step, points.expert_rows)
        yield from (self._mixture_step(*point) for point in points.mixtures)

    def _row_step(self, rows: int) -> Workload:
        """Layers of the operators that process each token separately, in a step of `rows` requests with one new token
        each. In such a step, the output projection of the model (the language model head) processes `rows` tokens, too.
        """
        step = self._step(Requests(rows, 1, 0), EXPECTED)
        return _of_operators(step, *names.BY_ROWS)

    def _attention(self, requests: Requests) -> Workload:
        return _of_operators(self._step(requests, EXPECTED), names.ATTENTION)

    def _expert_step(self, rows: int) -> Workload:
        """Step with the layers of one expert. All `rows` tokens go to this expert."""
        chosen = self._mixture.experts_per_token
        loads = (rows,) * chosen + (0,) * (self._mixture.experts - chosen)
        step = self._step(Requests(rows, 1, 0), loads)
        found = _layers(step, lambda node: node.name.startswith("layers/feedforward/experts."))
        return replace(found, nodes=tuple(replace(node, repeats=node.repeats // chosen) for node in found.nodes))

    def _mixture_step(self, tokens: int, experts: int) -> Workload:
        each, more = divmod(tokens * self._mixture.experts_per_token, experts)
        loads = (each + 1,) * more + (each,) * (experts - more) + (0,) * (self._mixture.experts - experts)
        return _of_operators(self._step(Requests(tokens, 1, 0), loads), names.ROUTER, names.EXPERTS)

    def _step(self, requests: Requests, experts: str | tuple[int, ...]) -> Workload:
        chosen = replace(
            self.described.step, groups=(requests,), experts=experts, key_block=self.key_block, is_written_out=False
        )
        return language_model_workload(self.model, chosen, self.described.name)

    def _ns(self, step: Workload) -> float:
        return float(self.figures.of(step)[LATENCY]) * self.period_ns


def _part_of(name: str) -> str:
    """Name of the projection in the name of a layer. For layers/feedforward/experts.0/gate_proj.scale, it is
    `gate_proj`.
    """
    return name.rpartition("/")[2].partition(".")[0]


def _of_operators(step: Workload, *operators: str) -> Workload:
    return _layers(step, lambda node: operator_of(node.name) in operators)


def _layers(step: Workload, is_chosen: Callable[[WorkloadNode], bool]) -> Workload:
    """Workload with the layers of a step for which `is_chosen` returns True."""
    return replace(step, nodes=tuple(node for node in step.nodes if node.layer is not None and is_chosen(node)))


_VARIANTS = {4: "int4", 8: "int8", 16: "bf16", 32: "fp32"}


@dataclass(frozen=True)
class ServingProfile:
    """Profile for a simulator of serving: files, and notes on them."""

    release: str
    files: dict[str, str]
    """Content of each file, by path relative to the folder of the profile."""
    searched_layers: int
    notes: tuple[str, ...]
    """Notes on work that the times do not contain."""


@dataclass(frozen=True)
class ProfileNames:
    """Names of hardware, model and precision for the simulator.

    The name '' stands for a default: the name of the core, the name of the model, or the name that `variant_of`
    returns.
    """

    hardware: str = ""
    model: str = ""
    variant: str = ""


def serving_profile(
    described: DescribedModel,
    figures: LayerFigures,
    release: str,
    limits: ProfileLimits,
    chosen: ProfileNames,
    key_block: int | None,
) -> ServingProfile:
    """Profile of a model on a core.

    Raises InputError for a core without a clock, for a model that this release of the simulator cannot simulate, and
    for names that the release does not allow. Raises MappingError with the names of all layers for which no mapping
    fits.
    """
    period_ns = _period_ns(figures.core)
    names = _names(described, figures.core, chosen)
    problems = Problems()
    check_model(described.model, release, problems)
    check_names(release, names.hardware, names.model, names.variant, problems)
    problems.finish()
    times = OperatorCosts(described, figures, period_ns, key_block)
    mixture = mixture_of(described.model)
    points = points_of(release, limits, mixture)
    times.search(points)
    mixer = described.model.blocks[0].mixer
    has_head_norms = isinstance(mixer, Attention) and mixer.head_norm is not None
    what = Described(names.hardware, names.model, names.variant, mixture, has_head_norms)
    files = files_of(release, what, limits, points, times)
    notes = tuple(f"not costed: {row.operator_type} {row.reason}" for row in figures.uncosted.values())
    about = yaml_text(_about(what, limits, times, notes), allow_unicode=True, width=120)
    folder = next(iter(files)).rpartition("/")[0]
    place = f"{folder.rpartition('/')[0]}/meta.yaml" if release == BUNDLE else f"{folder}/{names.hardware}.about.yaml"
    return ServingProfile(release, {place: about, **files}, figures.searched, notes)


def _period_ns(core: Core) -> float:
    period = clock_period_ns(core)
    if period is None:
        told = f"{core.name} has no clock, but the times of profiles are in nanoseconds"
        raise InputError([Problem(told, path=CLOCK_KEY, allowed="a frequency in the hardware file, such as 700 MHz")])
    return period


def _names(described: DescribedModel, core: Core, chosen: ProfileNames) -> ProfileNames:
    variant = chosen.variant or variant_of(described.step.precision)
    return ProfileNames(chosen.hardware or core.name, chosen.model or described.model.name, variant)


def variant_of(precision: Precision) -> str:
    """Name of the precision of a model. The name contains the number of bits of the weights. If the cache has another
    number of bits, the name also contains that number.
    """
    weights, cache = (_VARIANTS.get(bits, f"{bits}bit") for bits in (precision.weights, precision.cache))
    return weights if weights == cache else f"{weights}-kv{cache}"


def _about(what: Described, limits: ProfileLimits, times: OperatorCosts, notes: tuple[str, ...]) -> JsonObject:
    """Description of a profile in the form that release 1.1 of the simulator reads, with the settings that made the
    tables.
    """
    return {
        "profiler_version": f"tilewright {__version__}",
        "hardware": what.hardware,
        "model": what.model,
        "variant": what.variant,
        "tp_degrees": [1],
        "engine_effective": {"max_num_batched_tokens": limits.tokens, "max_num_seqs": limits.requests},
        "attention_grid": {"max_kv": limits.context},
        "skew_profile": {"enabled": False},
        "skew_fit": {"enabled": False},
        "cost_model": times.figures.options.model,
        "clock_period_ns": times.period_ns,
        "key_block": times.key_block,
        "not_costed": list(notes),
    }
