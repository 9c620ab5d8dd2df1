"""Which models and names LLMServingSim has layers and folders for."""

import re

from tilewright.errors import Problems
from tilewright.peers.llmservingsim.points import MixtureSize
from tilewright.peers.llmservingsim.releases import BUNDLE, FLAT
from tilewright.workload.language_models.architecture import PRE, Architecture, Attention, Mixture

_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_ROTARY_LEFT_OUT = "TPU"
"""In a name of hardware: the simulator then takes the time of positions to be that of attention."""


def check_model(model: Architecture, release: str, problems: Problems) -> None:
    """Record what of a model a release has no layers for: it would be left out without a word."""
    at = ("language_model",)
    mixers = {block.mixer for block in model.blocks}
    if any(not isinstance(mixer, Attention) for mixer in mixers):
        problems.at(at, f"{release} knows attention with keys and values of each token", model.model_type)
    if len(model.kinds) > 1:
        problems.at(at, f"{release} knows models whose blocks are all alike", f"{len(model.kinds)} kinds of blocks")
    if any(block.norms != PRE for block in model.blocks) or model.last_norm is None:
        problems.at(at, f"{release} knows a norm before each part of a block and one behind all", model.model_type)
    for part in dict.fromkeys(block.feed_forward for block in model.blocks):
        expert = part.expert if isinstance(part, Mixture) else part
        if expert is not None and not expert.is_gated:
            problems.at(at, f"{release} knows feed-forward parts with a gate", model.model_type)
        if isinstance(part, Mixture) and release == FLAT:
            problems.at(at, f"{release} knows no experts", model.model_type)
        if isinstance(part, Mixture) and part.shared is not None and release != BUNDLE:
            problems.at(at, f"{release} knows no shared experts", model.model_type)


def mixture_of(model: Architecture) -> MixtureSize | None:
    """The experts of its blocks; None for a model without."""
    part = model.blocks[0].feed_forward
    return MixtureSize(part.experts, part.experts_per_token) if isinstance(part, Mixture) else None


def check_names(release: str, hardware: str, model: str, variant: str, problems: Problems) -> None:
    """Record names that are no folders, or that the simulator takes to mean something else."""
    if not _FOLDER.fullmatch(hardware):
        problems.at(("--hardware-name",), "is no name of a folder", hardware, "letters, digits, . _ + -")
    elif _ROTARY_LEFT_OUT in hardware:
        told = f"the simulator leaves out positions on hardware with {_ROTARY_LEFT_OUT} in its name"
        problems.at(("--hardware-name",), told, hardware, "another name")
    parts = model.split("/")
    if len(parts) > 2 or not all(_FOLDER.fullmatch(part) for part in parts):
        problems.at(("--model-name",), "is no name of a model", model, "such as meta-llama/Llama-3.1-8B")
    elif release == FLAT and "llama" not in model.lower():
        told = f"{release} looks up the layers of Llama for models with llama in their name, and others else"
        problems.at(("--model-name",), told, model, "such as meta-llama/Llama-3.1-8B")
    if not _FOLDER.fullmatch(variant):
        problems.at(("--variant",), "is no name of a folder", variant, "such as bf16")
