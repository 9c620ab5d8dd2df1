"""Language models on several cores: with every block written out, they are cut, placed and scheduled."""

from typing import Any

import pytest
import tilewright
from tilewright.base.errors import InputError

from tests.unit.workload.language_models.models import TINY_LLAMA

SYSTEM: dict[str, Any] = {
    "hardware": "config/hardware/multi/quad_core.yaml",
    "mapping": "config/mapping/multi/quad_core.yaml",
    "nb_ga_individuals": 2,
    "nb_ga_generations": 1,
}
MODEL = {**TINY_LLAMA, "model_type": "mistral", "num_hidden_layers": 1, "sliding_window": 6}


@pytest.mark.parametrize("step", [{"phase": "decode", "context": 9}, {"phase": "prefill", "tokens": 7, "context": 3}])
def test_a_step_is_scheduled(step: dict[str, Any]) -> None:
    """A step with cache, folded mask and window is scheduled."""
    schedule = tilewright.run_multi_core(workload={"language_model": MODEL, "written_out": True, **step}, **SYSTEM)
    assert schedule.latency_cycles > 0


def test_layers_that_stand_for_several_are_refused() -> None:
    """Layers that stand for several are refused by name, and the message says to write the step out."""
    step = {"language_model": {**MODEL, "num_hidden_layers": 2}, "phase": "decode", "context": 9}
    with pytest.raises(InputError, match=r"written_out: true.*2 x layers/input_norm"):
        tilewright.run_multi_core(workload=step, **SYSTEM)
