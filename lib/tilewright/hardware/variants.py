"""Variants of a hardware file: every combination of named changes to the file, for sweeps over architectures."""

import copy
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tilewright.base.errors import InputError, Problem, nearest_name
from tilewright.base.harmless import ended_lines
from tilewright.base.yamlfile import YamlDocument, load_yaml, yaml_text
from tilewright.hardware.dotted_paths import key_path
from tilewright.hardware.text_edits import with_values
from tilewright.hardware.yaml_reader import read_accelerator

KEYS = ("base", "vary")
CHOICE_PATTERN = r"[A-Za-z0-9_.+]+"
"""Regular expression for the name of a choice. The name becomes part of the file names of the variants with this
choice.
"""


@dataclass(frozen=True)
class Variant:
    """Variant: a hardware file with some values changed."""

    name: str
    """Name of the variant, in the form <base>-<choice>-<choice>…"""
    choices: tuple[tuple[str, str], ...]
    """Pairs (varied property, choice)."""
    data: dict[str, Any]
    """Data of the hardware file of the variant."""


def read_variants(path: Path) -> tuple[str, tuple[Variant, ...]]:
    """Pair (name of the base file, all variants in a file of variants). Each variant is checked as a hardware file.
    Raises InputError with every problem."""
    document = load_yaml(path)
    problems = list(_shape_problems(document))
    if problems:
        raise InputError(problems)
    base = path.parent / document.data["base"]
    base_data = load_yaml(base).data
    read_accelerator(base)
    variants = [_variant(document, base.stem, base_data, names, problems) for names in _combinations(document.data)]
    for variant in variants if not problems else ():
        try:
            read_accelerator(variant.data)
        except InputError as error:
            problems += [replace(problem, file=f"{path}, variant {variant.name}") for problem in error.problems]
    if problems:
        raise InputError(dict.fromkeys(problems))
    return base.name, tuple(variants)


def variant_yaml(variant: Variant, base: str) -> str:
    """Text of the hardware file of a variant. `base` is the name of the file from which the variant is made."""
    choices = ", ".join(f"{what} {choice}" for what, choice in variant.choices)
    head = ended_lines(
        [f"Made by `tilewright vary` from {base}: {choices}. {base} names the sources of the figures."], "# "
    )
    return head + yaml_text(variant.data, default_flow_style=None, width=118, allow_unicode=True)


def _shape_problems(document: YamlDocument) -> Iterator[Problem]:
    """Problems of a file of variants whose tables do not have the required form."""

    def problem(message: str, *path: str, nearest: str = "") -> Problem:
        return Problem(message, document.file, document.line_of(path), ".".join(path), nearest=nearest)

    data = document.data
    if not isinstance(data, dict):
        yield problem("must be a table with the keys base and vary")
        return
    for key in data:
        if key not in KEYS:
            yield problem("unknown key", str(key), nearest=nearest_name(str(key), KEYS))
    if not isinstance(data.get("base"), str):
        yield problem("must be the path of a hardware file, relative to the folder of this file", "base")
    if not isinstance(data.get("vary"), dict) or not data["vary"]:
        yield problem("must be a table of properties, each with a table of its choices", "vary")
        return
    for what, choices in data["vary"].items():
        if not isinstance(choices, dict) or not choices:
            yield problem(
                "must be a table of choices, each with a table of the values that this choice sets", "vary", str(what)
            )
            continue
        for name, values in choices.items():
            if not re.fullmatch(CHOICE_PATTERN, str(name)):
                yield problem("not a name: letters, digits, _ . +", "vary", str(what), str(name))
            if not isinstance(values, dict):
                yield problem(
                    "must be a table: each key is a path in the hardware file, with the new value at this path",
                    "vary",
                    str(what),
                    str(name),
                )


def _combinations(data: dict[str, Any]) -> Iterator[tuple[tuple[str, Any], ...]]:
    """Combinations with one choice for each varied property, as tuples of pairs (varied property, choice). The last
    property varies fastest.
    """
    tables = [[(what, name) for name in choices] for what, choices in data["vary"].items()]
    yield from itertools.product(*tables)


def _variant(
    document: YamlDocument, base: str, base_data: Any, names: tuple[tuple[str, Any], ...], problems: list[Problem]
) -> Variant:
    data = copy.deepcopy(base_data)
    name = "-".join([base, *(str(choice) for _, choice in names)])
    for what, choice in names:
        for path, value in document.data["vary"][what][choice].items():
            found = key_path(data, str(path))
            if isinstance(found, Problem):
                place = ("vary", what, choice, path)
                line = document.line_of(place)
                problems.append(replace(found, file=document.file, line=line, path=".".join(map(str, place))))
            else:
                data = with_values(data, [(found, copy.deepcopy(value))])
    data["name"] = name
    return Variant(name, tuple((str(what), str(choice)) for what, choice in names), data)
