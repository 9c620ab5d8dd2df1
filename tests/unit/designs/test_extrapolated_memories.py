"""Designs with extrapolated memory costs: the column, the sentence of `explore`, and the warnings of `decide`."""

from pathlib import Path
from typing import Any

import pandas
import pytest
from tilewright.designs.answer import Answer
from tilewright.designs.decision import decision_of
from tilewright.designs.decision_text import CHOICE, RUNNER_UP
from tilewright.designs.tables import answer_text

from tests.unit.designs.decision_cases import made_of
from tests.unit.designs.test_slow_memories import answered


def of_widths(*widths: int, **changes: Any) -> Answer:
    """Return the answer to a space whose designs differ in the word width of the memory."""
    laws = {f"memories.memory.ports.{name}.bandwidth_max": "bits" for name in ("r_port_1", "w_port_1")}
    return answered(axes={"bits": {"values": list(widths)}}, laws=laws, **changes)


def test_explore_counts_the_designs_with_extrapolated_costs() -> None:
    """The sentence counts the two designs of four that are wider than the 512 bits of the table."""
    answer = of_widths(256, 512, 768, 1024)
    table = answer.exploration.table.set_index("bits")
    assert dict(table["extrapolated_memories"]) == {256: "", 512: "", 768: "memory", 1024: "memory"}
    (sentence,) = answer.extrapolation_notes
    assert sentence.startswith("In 2 of 4 compared designs, costs of a memory are extrapolated")
    assert "(memory in 2 designs)" in sentence
    assert sentence in answer_text(answer)
    wide = {table.loc[bits, "design"] for bits in (768, 1024)}
    best = table.loc[table["energy_pj"].idxmin(), "design"]
    assert (f"{best} (least energy" in sentence) == (best in wide)


def test_without_extrapolation_there_is_no_column_and_no_sentence() -> None:
    """A space without extrapolated costs has neither the column nor the sentence."""
    answer = of_widths(256, 512)
    assert "extrapolated_memories" not in answer.exploration.table
    assert answer.extrapolation_notes == ()


@pytest.mark.parametrize("objective", ["energy", "EDP", "latency"])
def test_decide_warns_of_extrapolated_costs(objective: str) -> None:
    """`decide` warns of extrapolated costs in the choice and the runner-up, unless the objective is latency."""
    answer = of_widths(512, 768, 1024)
    decision = decision_of(answer, objective)
    assert decision.runner_up is not None
    names = {CHOICE: decision.choice.name, RUNNER_UP: decision.runner_up.design.name}
    told = {one.topic: one for one in made_of(decision) if "extrapolated beyond the table" in one.text}
    table: pandas.DataFrame = answer.exploration.table.set_index("design")
    for topic, name in names.items():
        is_wide = table.loc[name, "extrapolated_memories"] == "memory"
        assert (topic in told) == (is_wide and objective != "latency")
        if topic in told:
            assert f"in {name}, costs of memories are extrapolated" in told[topic].text
            hardware = Path("out") / "designs" / name / "hardware.yaml"
            assert told[topic].commands[1] == f"tilewright validate {hardware}"
