"""Stages in random orders: correct results, or a refusal that names the misplaced stage."""

import random
from typing import Any

import pytest
import tilewright
from tilewright import main_stage
from tilewright.main_stage import CumulativeCME, MainStage

from tests.unit.main_stage.conftest import files

ABOVE = "SumStage ListifyStage SimpleSaveStage CompleteSaveStage PickleSaveStage DumpStage SearchUnusedMemoryStage"
BELOW = "RemoveUnusedMemoryStage CompleteSaveStage DumpStage MinimalLatencyStage MinimalEnergyStage ListifyStage"
LOWER = "MinimalEDPStage MinimalLatencyStage MinimalEnergyStage ListifyStage SimpleSaveStage"
CHOICES = ["SpatialMappingGeneratorStage", "SpatialMappingConversionStage"]
MAPPERS = ["LomaStage", "LomaStage", "SalsaStage", "TemporalMappingGeneratorStage"]
LAYERS = 7


def drawn(draw: random.Random) -> list[str]:
    """Return a random list of stages, mostly in a meaningful order."""

    def some(names: str, share: float) -> list[str]:
        found = [name for name in names.split() if draw.random() < share]
        draw.shuffle(found)
        return found

    parsers = ["WorkloadParserStage", "AcceleratorParserStage", *some("SimpleSaveStage", 0.15)]
    draw.shuffle(parsers)
    stages = [*parsers, *some(ABOVE, 0.2), "WorkloadStage", *some(BELOW, 0.15), draw.choice(CHOICES)]
    stages += [*some(LOWER, 0.25), draw.choice(MAPPERS), "CostModelStage"]
    if draw.random() < 0.2:
        one, other = draw.randrange(len(stages)), draw.randrange(len(stages))
        stages[one], stages[other] = stages[other], stages[one]
    return stages


def keywords_for(stages: list[str]) -> dict[str, Any]:
    """Return the keywords that the stages read."""
    found: dict[str, Any] = dict(files())
    if {"SimpleSaveStage", "CompleteSaveStage", "DumpStage"} & set(stages):
        found["dump_folder"] = "out"
    if "PickleSaveStage" in stages:
        found["pickle_filename"] = "out/all.pickle"
    if {"LomaStage", "TemporalMappingGeneratorStage"} & set(stages):
        found["loma_lpf_limit"] = 3
    if "SalsaStage" in stages:
        found["salsa_iteration_number"] = 20
    return found


def flat(pairs: Any) -> list[Any]:
    """Return all evaluations, including those in lists."""
    return [one for cme, _ in pairs for one in (flat(cme) if isinstance(cme, list) else [cme])]


def check(cme: Any) -> None:
    """Check that a sum has each layer once and that its figures are the sums of its parts."""
    if not isinstance(cme, CumulativeCME):
        assert cme.energy_total == pytest.approx(cme.mac_energy + cme.mem_energy)
        return
    assert sorted(cme.layer_ids) == list(range(LAYERS))
    for name in ("energy_total", "latency_total2", "ideal_cycle", "mem_energy"):
        assert getattr(cme, name) == pytest.approx(sum(getattr(part, name) for part in cme.parts))


@pytest.mark.parametrize("first", [0])
def test_random_orders(first: int) -> None:
    """The fifteen random orders include some with correct results and some with problems at a stage."""
    refused = 0
    for seed in range(first, first + 15):
        stages = drawn(random.Random(seed))
        try:
            pairs = MainStage([getattr(main_stage, name) for name in stages], **keywords_for(stages)).run()
        except tilewright.InputError as error:
            refused += 1
            told = [f"list_of_callables[{place}] ({name})" for place, name in enumerate(stages)]
            for problem in error.problems:
                assert problem.path in (*told, "list_of_callables") or "needs this keyword" in problem.message, (
                    seed,
                    str(problem),
                )
            continue
        for cme in flat(pairs)[:100]:
            check(cme)
    assert 1 < refused < 14
