"""Stages of users in scripts for several cores, at any place; settings of the run as keywords."""

from pathlib import Path
from typing import Any

import pytest
import tilewright
from tilewright.main_stage import (
    AcceleratorParserStage,
    GenerateCNWorkloadHybridStage,
    InterCoreMappingStage,
    IntraCoreMappingStage,
    MainStage,
    Stage,
    StreamONNXModelParserStage,
)

from tests.unit.main_stage.test_scripts import system

STAGES: list[Any] = [
    *(AcceleratorParserStage, StreamONNXModelParserStage, GenerateCNWorkloadHybridStage),
    *(IntraCoreMappingStage, InterCoreMappingStage),
]
FEW = {"nb_ga_individuals": 4, "nb_ga_generations": 1}


class Looks(Stage):
    """A stage that passes everything on."""

    def run(self) -> Any:
        """Yield all results."""
        for scme, extra_info in self.list_of_callables[0](self.list_of_callables[1:], **self.kwargs).run():
            yield scme, ("seen", extra_info)


class MoreIndividuals(Stage):
    """A stage that runs the other stages with two settings."""

    def run(self) -> Any:
        """Yield the results with each setting."""
        for count in (4, 8):
            keywords = self.kwargs | {"nb_ga_individuals": count}
            for scme, _ in self.list_of_callables[0](self.list_of_callables[1:], **keywords).run():
                yield scme, count


def keywords(folder: Path) -> dict[str, Any]:
    """Return keywords for the files and a short search."""
    return dict(zip(("accelerator", "workload_path", "mapping_path"), system(folder), strict=True)) | FEW


@pytest.mark.parametrize("place", range(5))
def test_a_stage_of_a_users_wherever_it_stands(place: int, tmp_path: Path) -> None:
    """A stage at any place keeps the result and adds its extra information."""
    given = keywords(tmp_path)
    plain = tilewright.run_multi_core(given["workload_path"], given["accelerator"], given["mapping_path"], **FEW)
    (scme,), said = MainStage([*STAGES[:place], Looks, *STAGES[place:]], **given).run()
    assert (scme.latency, scme.energy, said) == (plain.latency_cycles, plain.energy_pj, [("seen", None)])


def test_settings_that_a_stage_varies(tmp_path: Path) -> None:
    """Each run of a stage that varies a setting has the result of that setting."""
    given = keywords(tmp_path)
    scmes, counts = MainStage([*STAGES[:2], MoreIndividuals, *STAGES[2:]], **given).run()
    assert counts == [4, 8]
    for scme, count in zip(scmes, counts, strict=True):
        options = FEW | {"nb_ga_individuals": count}
        made = tilewright.run_multi_core(given["workload_path"], given["accelerator"], given["mapping_path"], **options)
        assert (scme.latency, scme.energy) == (made.latency_cycles, made.energy_pj)


def test_the_model_of_schedules_is_a_keyword(tmp_path: Path) -> None:
    """The schedule model is a keyword; wrong settings are reported together as the script spells them."""
    given = keywords(tmp_path)
    (scme,), _ = MainStage(STAGES, **given, schedule_model="stream-2023").run()
    files = given["workload_path"], given["accelerator"], given["mapping_path"]
    made = tilewright.run_multi_core(*files, **FEW, schedule_model="stream-2023")
    assert (scme.latency, scme.energy) == (made.latency_cycles, made.energy_pj)
    with pytest.raises(tilewright.InputError) as error:
        MainStage(STAGES, **given, scheduler_candidate_selection="memry", cn_define_mode=9).run()
    assert {problem.path for problem in error.value.problems} == {"scheduler_candidate_selection", "cn_define_mode"}
