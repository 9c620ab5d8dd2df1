"""Profiles for simulators of serving: the operator times of a language model on a core, as files that they read."""

from dataclasses import dataclass
from typing import Any

import yaml

from tilewright import __version__
from tilewright.errors import InputError, Problem, Problems
from tilewright.hardware.core import Core
from tilewright.hardware.static_power import CLOCK_KEY, clock_period_ns
from tilewright.peers.llmservingsim.models import check_model, check_names, mixture_of
from tilewright.peers.llmservingsim.points import Limits
from tilewright.peers.llmservingsim.releases import BUNDLE, Described, files_of, points_of
from tilewright.token_costs.layer_figures import LayerFigures
from tilewright.token_costs.operators import OperatorCosts
from tilewright.workload.language_models.architecture import Attention
from tilewright.workload.language_models.reader import DescribedModel
from tilewright.workload.language_models.request import Precision

_VARIANTS = {4: "int4", 8: "int8", 16: "bf16", 32: "fp32"}


@dataclass(frozen=True)
class ServingProfile:
    """A profile for a simulator of serving."""

    release: str
    files: dict[str, str]
    """Path below the folder of the profile -> text."""
    searched_layers: int
    notes: tuple[str, ...]
    """What the times do not contain."""


@dataclass(frozen=True)
class ProfileNames:
    """How the simulator calls what the profile is of; '' for the names of our own files."""

    hardware: str = ""
    model: str = ""
    variant: str = ""


def serving_profile(
    described: DescribedModel,
    figures: LayerFigures,
    release: str,
    limits: Limits,
    chosen: ProfileNames,
    key_block: int | None,
) -> ServingProfile:
    """The profile of a model on a core.

    Raises InputError for a core without a clock, for a model that the release has no layers for, and for names that are
    none; MappingError naming layers that nothing fits.
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
    about = yaml.safe_dump(_about(what, limits, times, notes), sort_keys=False, allow_unicode=True, width=120)
    folder = next(iter(files)).rpartition("/")[0]
    place = f"{folder.rpartition('/')[0]}/meta.yaml" if release == BUNDLE else f"{folder}/{names.hardware}.about.yaml"
    return ServingProfile(release, {place: about, **files}, figures.searched, notes)


def _period_ns(core: Core) -> float:
    period = clock_period_ns(core)
    if period is None:
        told = f"{core.name} has no clock, and profiles are in nanoseconds"
        raise InputError([Problem(told, path=CLOCK_KEY, allowed="a frequency in the hardware file, such as 700 MHz")])
    return period


def _names(described: DescribedModel, core: Core, chosen: ProfileNames) -> ProfileNames:
    variant = chosen.variant or variant_of(described.step.precision)
    return ProfileNames(chosen.hardware or core.name, chosen.model or described.model.name, variant)


def variant_of(precision: Precision) -> str:
    """The name of a precision: of weights, and of the cache where that is another."""
    weights, cache = (_VARIANTS.get(bits, f"{bits}bit") for bits in (precision.weights, precision.cache))
    return weights if weights == cache else f"{weights}-kv{cache}"


def _about(what: Described, limits: Limits, times: OperatorCosts, notes: tuple[str, ...]) -> dict[str, Any]:
    """What release 1.1 reads beside the tables, and what they were made with."""
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
