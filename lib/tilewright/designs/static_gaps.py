"""Statement in a decision about the parts of the named designs that have no static power."""

from collections.abc import Iterator

from tilewright.base.errors import some_of
from tilewright.designs.decision import Decision
from tilewright.designs.decision_text import CERTAINTY, Commands, Statement
from tilewright.designs.design_evaluator import accelerator_of
from tilewright.designs.space import Space
from tilewright.hardware.static_power import static_power_fields
from tilewright.results.static_parts import StaticParts, parts_text, static_parts_of, uneven_parts


def static_power_statements(decision: Decision, space: Space, commands: Commands) -> Iterator[Statement]:
    """Statement on the parts without a static power, in the designs that the decision names. There is no statement if
    the objective does not depend on the energy, if there is only one design, or if all parts have a static power.
    """
    if not decision.depends_on_energy or decision.runner_up is None:
        return
    indexes = decision.front.rows.set_index("design")["index"]
    hardware = {design.name: space.design(int(indexes[design.name])).hardware for _, design in decision.named}
    parts_of = {
        name: static_parts_of(static_power_fields(accelerator_of(file, space.is_of_systems).cores))
        for name, file in hardware.items()
    }
    if text := _text(parts_of):
        yield Statement(CERTAINTY, text, commands.validate(decision.choice.name)[:1])


def _text(parts_of: dict[str, StaticParts]) -> str:
    """Sentences on the parts of designs that have no static power; '' if all parts have a static power. `parts_of` has
    the parts by name of the design."""
    groups: dict[StaticParts, list[str]] = {}
    for name, parts in parts_of.items():
        groups.setdefault(parts, []).append(name)
    told = {parts: names for parts, names in groups.items() if parts.zero or parts.not_given}
    if not told:
        return ""
    if not any(parts.counted or parts.zero for parts in groups):
        return "No energy includes static power, because the hardware files of the named designs give none."
    texts = [f"{'' if parts.counted else 'no '}static power ({parts_text(parts)})" for parts in told]
    if len(groups) == 1:
        return f"The energies of all named designs include {texts[0]}."
    listed = "; ".join(f"{some_of(names)}: {text}" for names, text in zip(told.values(), texts, strict=True))
    is_counted = any(parts.counted for parts in groups)
    begin = "The named designs do not include the same static power." if is_counted else "No energy has static power."
    uneven = [f"{', '.join(parts)} in {name}" for name, parts in uneven_parts(parts_of)]
    missing = f" Some parts have a static power in other designs only: {some_of(uneven)}."
    certain = " The order of the designs is certain only if a static power that is not given is really 0."
    return f"{begin} {listed}.{missing if uneven else ''}{certain if any(parts.not_given for parts in groups) else ''}"
