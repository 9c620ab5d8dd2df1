"""Published configurations, and models that are small enough to be searched."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from tilewright.base.errors import Problems
from tilewright.workload.language_models.architecture import Architecture
from tilewright.workload.language_models.families import architecture_of

FOLDER = Path(__file__).parents[4] / "config" / "workload" / "language_models"
PUBLISHED = {
    "deepseek-v2-lite": 15_706_484_224,
    "deepseek-v3": 671_026_419_200,
    "falcon-7b": 6_921_720_704,
    "gemma-2-2b": 2_614_341_888,
    "gpt2": 124_439_808,
    "llama-3.1-405b": 405_853_388_800,
    "llama-3.1-70b": 70_553_706_496,
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.2-1b": 1_235_814_400,
    "mamba-2.8b": 2_768_345_600,
    "mistral-7b-v0.1": 7_241_732_096,
    "mixtral-8x7b-v0.1": 46_702_792_704,
    "opt-6.7b": 6_658_473_984,
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-72b": 72_706_203_648,
    "qwen3-30b-a3b": 30_532_122_624,
}
"""Model -> number of parameters, from the tensors of its checkpoint on Hugging Face."""
TINY_LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 64,
}


@cache
def fields_of(name: str) -> dict[str, Any]:
    """The fields of a published configuration."""
    fields: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return fields


def model_of(fields: dict[str, Any], name: str = "model") -> Architecture:
    """The model that fields describe."""
    problems = Problems()
    model = architecture_of(fields, name, problems)
    problems.finish()
    assert model is not None
    return model
