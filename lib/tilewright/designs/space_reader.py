"""Reader of the file of a design space and of the base, which reports all mistakes before any design is evaluated."""

import math
import os
from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Table
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tilewright.base.errors import InputError, KeyPath, Problem, Problems, Unused
from tilewright.base.file_kinds import HARDWARE, SPACE, refuse_other_kind
from tilewright.base.missing_files import missing_file
from tilewright.base.parameters import made_of, parameters_of
from tilewright.base.units import FieldError
from tilewright.base.unused import unused_in
from tilewright.base.validation import validate
from tilewright.base.yamlfile import YamlDocument, document_of, load_yaml, table
from tilewright.designs.axes_reader import AxesReader, read_sheet
from tilewright.designs.columns import LIMITED
from tilewright.designs.further_values import further_value_problems, is_within
from tilewright.designs.laws import Expression, ExpressionError, Value, read_expression
from tilewright.designs.space import (
    DEFAULTS,
    MOST_KEPT,
    Axis,
    Formula,
    Law,
    Network,
    Space,
    SpaceOptions,
    kind_of_options,
    option_of_other_kind,
)
from tilewright.designs.space_networks import network_options
from tilewright.designs.space_schema import SpaceFile, check_name
from tilewright.hardware.core import Accelerator
from tilewright.hardware.core_paths import contained_cores, core_file_names, core_files_of, find_core_file
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.hardware.system_reader import missing_file_problem
from tilewright.hardware.text_edits import with_values
from tilewright.hardware.yaml_reader import accelerator_of
from tilewright.mapping.constraints import Mapping
from tilewright.mapping.file_checks import check_mapping_against_core, document_behind
from tilewright.mapping.yaml_reader import read_mapping

CORES = "core_files"


@dataclass(frozen=True)
class SystemBase:
    """Accelerator with several cores, with the contents of its core files."""

    document: YamlDocument
    """Content of the accelerator file, with the core files by name under CORES. `cores` and `offchip_core` use these
    names."""
    parts: Table[str, YamlDocument] = field(default_factory=dict)
    """Contents of core files, and of cores that the space file adds, by name of the core. Cores that the accelerator
    file itself contains are left out."""
    space_file: str = ""
    """Path of the space file, which can also contain cores under CORES."""

    def told(self, problem: Problem) -> Problem:
        """Copy of a problem with the file, the line and the path of the wrong value, if this value is in the content of
        a core (`parts`).

        All other problems are returned unchanged.
        """
        for name, part in self.parts.items():
            start = f"{CORES}.{name}"
            if problem.path == start or problem.path.startswith((f"{start}.", f"{start}[")):
                path = problem.path.removeprefix(start).removeprefix(".")
                lines = {part.dotted(known): line for known, line in part.lines.items()}
                shown = problem.path if part.file == self.space_file else path
                return replace(problem, file=part.file, line=lines.get(path, 0), path=shown)
        return problem


def system_base(
    document: YamlDocument, further: Table[str, YamlDocument], problems: Problems, space_file: str = ""
) -> SystemBase | None:
    """Base with several cores: an accelerator file, and the cores `further` that the space file adds.

    If a core file is missing or cannot be read, this is reported in `problems`, and the result is None.
    """
    contained = contained_cores(document.data)
    parts: dict[str, YamlDocument] = {}
    data = document.data
    if contained is None:
        paths = _paths(document, problems)
        if paths is None:
            return None
        names = dict(zip(paths, core_file_names(list(paths.values())), strict=True))
        for place, path in paths.items():
            read = problems.attempt(load_yaml, path, problems.notices)
            if read is None:
                return None
            parts[names[place]] = read
        data = with_values(data, names.items())
    known = {**(contained or {}), **{name: part.data for name, part in parts.items()}}
    for name in further:
        if name in known:
            problems.at((CORES, name), "the accelerator already has a core of this name")
    whole = {**data, CORES: known | {name: part.data for name, part in further.items()}}
    return SystemBase(replace(document, data=whole), {**parts, **further}, space_file)


def _paths(document: YamlDocument, problems: Problems) -> dict[KeyPath, Path] | None:
    """Path of each core file. The keys are the positions in the accelerator file at which the core files are named.

    If core files are missing, each is reported in `problems`, and the result is None.
    """
    folder = Path(document.file).parent
    found: dict[KeyPath, Path] = {}
    is_whole = True
    for place, name in core_files_of(document.data).values():
        path = find_core_file(name, folder)
        if path is not None:
            found[place] = path
            continue
        missing = missing_file_problem(name, folder)
        file, line, where = document.place_of(place)
        problems.found.append(replace(missing, file=file, line=line, path=where))
        is_whole = False
    return found if is_whole else None


LARGEST_SPACE = 10**8
"""Largest number of designs in a space."""


def read_space(source: str | Path | dict[str, Any], notices: list[str] | None = None) -> Space:
    """Design space of a file, or of a dict with the same data.

    Paths in a dict are relative to the working folder. Raises InputError with all mistakes. Remarks on unusual input
    are added to `notices`.
    """
    return space_of(document_of(source) if isinstance(source, dict) else load_yaml(source, notices), notices)


def space_of(document: YamlDocument, notices: list[str] | None = None) -> Space:
    """Design space of a document that is already loaded. Raises InputError with all mistakes."""
    refuse_other_kind(document, SPACE)
    problems = Problems(document)
    for path in document.repeated:
        problems.at(path, "the key is given twice: rename or remove one")
    options = [parameter.name for kind in DEFAULTS for parameter in parameters_of(kind)]
    entry: SpaceFile = validate(SpaceFile, document.data, problems, {"`options`": options})
    space = _Reader(document, entry, problems).space()
    problems.finish(notices)
    assert space is not None
    return space


class _Reader:
    def __init__(self, document: YamlDocument, entry: SpaceFile, problems: Problems) -> None:
        self.document, self.entry, self.problems = document, entry, problems
        self.folder = Path(document.file).parent
        self.system: SystemBase | None = None
        """Base with several cores; None if the base has one core."""
        self.base = self._base()
        self.axes = AxesReader(self.base.data if self.base else None, problems)
        self.sheet_file = ""

    def space(self) -> Space | None:
        """Design space of the file. None if the base, axes, laws, constraints or design sheet have mistakes. Mistakes
        are reported in `problems`."""
        entry, problems = self.entry, self.problems
        name, networks, options = self._name(), self._networks(), self._options()
        mapping = self._file(("mapping",), entry.mapping)
        problems.repeated(("objectives",), entry.objectives or (), "repeats an earlier value of the list")
        axes, rows, row_names = self._axes()
        laws = self._laws(axes)
        before, after = self._constraints(axes, laws)
        self.axes.check_setters()
        self._check_uses(axes, (*(law.formula for law in laws), *before, *after))
        self._check_size(axes, rows)
        parts = ("accelerator", "axes", "laws", "constraints", "designs")
        in_sheet = self.sheet_file and any(one.file == self.sheet_file for one in problems.found)
        space = None
        if self.base is not None and not any(map(problems.has, parts)) and not in_sheet:
            space = Space(
                name=name,
                file=self.document.file,
                networks=networks,
                mapping=mapping,
                options=options,
                objectives=tuple(objective for objective in entry.objectives or () if objective),
                shard_designs=entry.shard_designs,
                base=self.base.data,
                axes=axes,
                laws=laws,
                constraints_before=before,
                constraints_after=after,
                rows=rows,
                row_names=row_names,
            )
            self._check_first_design(space)
        else:
            self._check_settings(axes)
            if mapping:
                problems.attempt(read_mapping, mapping)
        return space

    # files, cores and networks ----------------------------------------------------------------------------------------

    def _name(self) -> str:
        if self.entry.name or self.problems.has("name"):
            return self.entry.name or ""
        return self._folder_name((), Path(self.document.file).stem if self.document.file else "space")

    def _networks(self) -> tuple[Network, ...]:
        given = self.entry.networks
        if isinstance(given, dict):
            named: Sequence[tuple[KeyPath, str, str | None]] = [
                (("networks", name), name, file) for name, file in given.items()
            ]
        else:
            named = [(("networks", place), Path(file or "").stem, file) for place, file in enumerate(given or ())]
        found: dict[str, Network] = {}
        names = [name for _, name, _ in named]
        options_of = network_options(self.entry, names, self.problems)
        if self.entry.zeros and self.system is not None:
            self.problems.unused(("zeros",), "has no effect: zeros are modelled only on a single core")
        for path, name, written in named:
            file = self._file(path, written)
            self._folder_name(path, name)
            for key in ("bits", "zeros") if file and file.suffix.lower() != ".onnx" else ():
                if getattr(options_of[name], key):
                    self.problems.at(
                        path, f"`{key}` applies only to ONNX files, and this network is not an ONNX file", written
                    )
            if name in found:
                self.problems.at(
                    path, "two networks have this name: write `networks` as a table from names to paths", name
                )
            elif file:
                found[name] = Network(name, file, options_of[name])
        return tuple(found.values())

    def _folder_name(self, path: KeyPath, name: str) -> str:
        try:
            return check_name(name) if name else name
        except FieldError as error:
            self.problems.at(path, error.message, name, error.allowed)
            return name

    def _options(self) -> SpaceOptions:
        given = self.entry.options or {}
        kind = kind_of_options(self.system is not None, given)
        try:
            made = made_of(kind, {**DEFAULTS[kind], **given})
            for name, why in made.without_effect().items():
                if name in given:
                    self.problems.unused(("options", name), why)
            return made
        except InputError as error:
            for one in error.problems:
                name = one.path.partition("[")[0]
                file, line, path = self.document.place_of(("options", name))
                told = option_of_other_kind(kind, name) or one.message
                self.problems.found.append(replace(one, file=file, line=line, path=path, message=told))
            return kind()

    def _file(self, path: KeyPath, written: str | None) -> Path | None:
        """Path of a file. `written` is the path in the space file, relative to the folder of the space file.

        If there is no such file, this is reported in `problems`, and the result is None.
        """
        if not written:
            return None
        file = Path(os.path.normpath(self.folder / written))
        if file.is_file():
            return file
        missing = missing_file(file)
        meant = Path(missing.nearest)
        near = missing.nearest and os.path.relpath(
            meant if meant.name != str(meant) else file.parent / meant, self.folder
        )
        self.problems.at(path, f"{missing.message}: {file}", nearest=near)
        return None

    def _base(self) -> YamlDocument | None:
        document = self._hardware_document(("accelerator",), self.entry.accelerator)
        is_system = document is not None and "cores" in table(document.data)
        further = self._further_cores(document is None or is_system)
        if document is None or not is_system:
            return document
        self.system = None if further is None else system_base(document, further, self.problems, self.document.file)
        return self.system.document if self.system else None

    def _further_cores(self, is_system: bool) -> dict[str, YamlDocument] | None:
        """Cores that the space adds to the base, by name.

        If a core cannot be used, this is reported in `problems`, and the result is None.
        """
        found = {}
        for name, given in (self.entry.core_files or {}).items():
            if not is_system:
                self.problems.at(
                    ("core_files", name), "is only for an accelerator with several cores, but the base has one core"
                )
            elif "." in name:
                self.problems.at(("core_files", name), "contains a dot, which separates names in paths", name)
            else:
                found[name] = self._hardware_document(("core_files", name), given)
        usable = {name: document for name, document in found.items() if document is not None}
        return usable if len(usable) == len(self.entry.core_files or {}) else None

    def _hardware_document(self, path: KeyPath, given: str | dict[str, Any] | None) -> YamlDocument | None:
        """Document of a hardware file. `given` is the path of this file or its content, and `path` is the position of
        `given` in the space file.

        If the document is not that of a hardware file, the mistakes are reported in `problems`, and the result is None.
        """
        if isinstance(given, dict):
            lines = self.document.lines.items()
            within = {known[len(path) :]: line for known, line in lines if known[: len(path)] == path}
            return YamlDocument(self.document.file, given, within)
        file = self._file(path, given)
        document = self.problems.attempt(load_yaml, file, self.problems.notices) if file else None
        if document is None:
            return None
        before = len(self.problems.found)
        self.problems.attempt(refuse_other_kind, document, HARDWARE)
        return document if len(self.problems.found) == before else None

    # designs ----------------------------------------------------------------------------------------------------------

    def _axes(self) -> tuple[tuple[Axis, ...], tuple[tuple[int, ...], ...] | None, tuple[str, ...]]:
        """Triple (axes, rows of the design sheet, names of the designs in the sheet).

        A row of the sheet is a design, given by the index of its value for each axis. If there is no sheet, the rows
        are None. If there are no names, the names are ().
        """
        entries = self.entry.axes or {}
        if self.entry.designs is None and not self.problems.has("designs"):
            if "axes" not in self.entry.model_fields_set:
                self.problems.at((), "has neither `axes` nor `designs`")
            return self.axes.grid(entries), None, ()
        file = self._file(("designs",), self.entry.designs)
        sheet = self.problems.attempt(read_sheet, file) if file else None
        self.sheet_file = str(file or "")
        if sheet is None:
            for name in entries:
                self.axes.check_name(("axes", name), name)
            return (), (), ()
        axes, rows = self.axes.sheet(entries, sheet)
        return axes, rows, sheet.names

    def _laws(self, axes: Sequence[Axis]) -> tuple[Law, ...]:
        found: list[Law] = []
        entries = self.entry.laws or {}
        known = [*(self.entry.axes or {}), *(axis.name for axis in axes)]
        for place, (key, written) in enumerate(entries.items()):
            is_path = "." in key
            path = self.axes.key_path(("laws", key), key) if is_path else None
            if not is_path:
                self._check_name_of_law(key, known)
            expression = self._expression(("laws", key), written)
            later = [other for other in list(entries)[place:] if "." not in other]
            if expression is not None and self._knows(("laws", key), expression, known, later):
                found.append(Law(key, self._formula(expression, axes, found), path))
            if not is_path:
                known.append(key)
        return tuple(found)

    def _check_name_of_law(self, key: str, known: Sequence[str]) -> None:
        if key in known:
            self.problems.at(("laws", key), "is the name of an axis; a law cannot change the values of an axis")
        self.axes.check_name(("laws", key), key)

    def _constraints(
        self, axes: Sequence[Axis], laws: Sequence[Law]
    ) -> tuple[tuple[Formula, ...], tuple[Formula, ...]]:
        """Pair (constraints that are checked before evaluation, constraints on results)."""
        before: list[Formula] = []
        after: list[Formula] = []
        named = [key for key in self.entry.laws or {} if "." not in key]
        known = [*(self.entry.axes or {}), *(axis.name for axis in axes), *named]
        for place, written in enumerate(self.entry.constraints or ()):
            path: KeyPath = ("constraints", place)
            expression = self._expression(path, written)
            if expression is None or not self._knows(path, expression, [*known, *LIMITED]):
                continue
            if not expression.is_condition:
                allowed = "comparisons with < <= == != >= >, also with `and`, `or`, `not`"
                self.problems.at(path, "is not a comparison", written, allowed)
            formula = self._formula(expression, axes, laws)
            (after if set(expression.names) & set(LIMITED) else before).append(formula)
        return tuple(before), tuple(after)

    def _expression(self, path: KeyPath, written: Value | None) -> Expression | None:
        if written is None:
            return None
        try:
            return read_expression(written)
        except ExpressionError as error:
            self.problems.at(path, str(error), written, error.allowed, error.nearest)
            return None

    def _knows(self, path: KeyPath, expression: Expression, known: Sequence[str], later: Sequence[str] = ()) -> bool:
        """True if all names in an expression are in `known`. All other names are reported as problems at `path`. For a
        name in `later`, the message says that the name is not defined yet.
        """
        unknown = [name for name in expression.names if name not in known]
        for name in unknown:
            if name in later:
                self.problems.at(
                    path, f"'{name}' is not defined yet: it is this law or a later law; a law can use only earlier laws"
                )
            elif name in LIMITED:
                self.problems.at(
                    path, f"'{name}' is a result and is known only after evaluation: only constraints can use it"
                )
            else:
                self.problems.unknown_name(
                    path, "no axis, law or result has this name", name, list(dict.fromkeys(known))
                )
        return not unknown

    def _formula(self, expression: Expression, axes: Sequence[Axis], laws: Sequence[Law]) -> Formula:
        places = {axis.name: {place} for place, axis in enumerate(axes)}
        places |= {law.key: set(law.formula.axes) for law in laws}
        used = tuple(sorted(set().union(*(places.get(name, set()) for name in expression.names))))
        return Formula(expression, used, math.prod(len(axes[place].values) for place in used) <= MOST_KEPT)

    def _check_uses(self, axes: Sequence[Axis], formulas: Sequence[Formula]) -> None:
        """Report each axis without effect as a problem: no path, law or constraint uses the axis, so all its values
        make the same design.

        If a law or a constraint cannot be read, no axis is reported, because that law or constraint could use any axis.
        """
        if self.problems.has("laws") or self.problems.has("constraints"):
            return
        used = {name for formula in formulas for name in formula.expression.names}
        for axis in axes:
            entry = (self.entry.axes or {}).get(axis.name)
            if (
                entry is not None
                and entry.path is None
                and entry.choices is None
                and axis.name not in used
                and axis.values
            ):
                allowed = "a `path`, or its name in a law or a constraint"
                self.problems.at(("axes", axis.name), "nothing uses this axis", allowed=allowed)

    def _check_size(self, axes: Sequence[Axis], rows: Sequence[tuple[int, ...]] | None) -> None:
        count = math.prod(len(axis.values) for axis in axes) if rows is None else len(rows)
        if count > LARGEST_SPACE:
            self.problems.at(("axes",), f"{count:,} designs are too many", allowed=f"{LARGEST_SPACE:,}")

    # the first design -------------------------------------------------------------------------------------------------

    def _check_first_design(self, space: Space) -> None:
        """Report the problems of the first allowed design, and the problems of the mapping file with this design. If no
        design is allowed, report this as a problem. A design is allowed if it meets all constraints that are checked
        before evaluation, and if its laws can be computed.
        """
        told: list[str] = []
        mapping = self.problems.attempt(read_mapping, space.mapping, told) if space.mapping else None
        if mapping is not None and any(entry.spatial_mapping for entry in mapping.entries):
            self._notice_fixed_arrays()
        index = space.first_allowed()
        if index is None:
            first = space.design(0)
            why = first.problem or f"does not meet {first.excluded_by}"
            key = "constraints" if space.constraints_before else "laws"
            self.problems.at(
                (key,), f"none of the {len(space):,} designs can be evaluated; reason for the first design: {why}"
            )
            return
        assert self.base is not None
        document = replace(self.base, data=space.design(index).hardware)
        try:
            accelerator = accelerator_of(document, told)
        except InputError as error:
            self._tell_of_design(space, index, document, error.problems)
            return
        finally:
            self.problems.notices += [Unused(self._of_base(notice.problem)) for notice in unused_in(told)]
        self._notice_faults_of_base(space, document)
        if isinstance(accelerator, MultiCoreAccelerator) != space.is_of_systems:
            self.problems.at(
                ("axes",),
                f"the base and design {space.design_name(index)} must both have one core or both have several cores",
            )
        elif mapping is not None and space.is_of_systems:
            self._check_core_names(mapping, accelerator, str(space.mapping))
        elif mapping is not None:
            self.problems.found += check_mapping_against_core(mapping, accelerator.cores[0], str(space.mapping))

    def _check_settings(self, axes: Sequence[Axis]) -> None:
        """Report problems of the first value of each axis, at the paths that the axis sets. The check is for spaces
        whose designs cannot be built because of other problems.
        """
        if self.base is None:
            return
        chosen = {axis.name: axis for axis in axes if axis.settings}
        settings = [setting for axis in chosen.values() for setting in axis.settings[0]]
        document = replace(self.base, data=with_values(self.base.data, settings))
        of_settings = Problems(document)
        of_settings.attempt(accelerator_of, document)
        places = {
            document.dotted(setter.path): setter.place
            for setter in self.axes.setters
            if setter.axis in chosen and setter.choice in ("", chosen[setter.axis].values[0])
        }
        for problem in of_settings.found:
            place = next((where for path, where in places.items() if is_within(problem.path, path)), None)
            if place is not None:
                self.problems.found.append(self._at(place, problem, f"{problem.path}: {problem.message}"))
        self._check_further_values([*chosen.values()])

    def _check_further_values(self, axes: Sequence[Axis]) -> None:
        """Report the first problem of each further value of the axes (`further_value_problems`)."""
        assert self.base is not None
        for place, problem, message in further_value_problems(self.base, axes, self.axes.setters):
            self.problems.found.append(self._at(place, problem, message))

    def _at(self, place: KeyPath, problem: Problem, message: str) -> Problem:
        """Copy of a problem in a design's hardware file. The copy has another message, and the position `place` in the
        space file.
        """
        file, line, where = self.document.place_of(place)
        return replace(problem, message=message, file=file, line=line, path=where)

    def _notice_faults_of_base(self, space: Space, document: YamlDocument) -> None:
        """Report a notice for each wrong value in the base that has no effect, because the space replaces it."""
        of_base = Problems(document)
        of_base.attempt(accelerator_of, replace(document, data=space.base))
        for problem in of_base.found:
            if problem.value:
                told = replace(problem, message=f"{problem.message}; no effect, because the space sets another value")
                self.problems.notices.append(Unused(self._of_base(told)))

    def _check_core_names(self, mapping: Mapping, accelerator: Accelerator, file: str) -> None:
        """Report core ids in the mapping file that the first allowed design of the space does not have. Also report ids
        of cores that compute nothing.
        """
        from tilewright.pipeline.stages.preflight.cores import CoreNames, check_ids

        assert isinstance(accelerator, MultiCoreAccelerator)
        problems = Problems(document_behind(mapping, file))
        check_ids(problems, mapping, CoreNames.of(accelerator))
        self.problems.found += problems.found

    def _notice_fixed_arrays(self) -> None:
        """Report a notice if the array varies between designs while the mapping file unrolls loops by fixed factors."""
        setter = next((one for one in self.axes.setters if "operational_array" in one.path), None)
        if setter is not None:
            where = self.document.dotted(setter.place)
            message = (
                f"fixes the factors of spatial mappings, but {where} can set larger arrays, whose further units then"
                " stay unused; without spatial_mapping in the mapping file, the search fills each array"
            )
            self.problems.notice(("mapping",), message)

    def _tell_of_design(self, space: Space, index: int, document: YamlDocument, found: Sequence[Problem]) -> None:
        """Report the problems `found` in the hardware of a design.

        Each problem is reported at the place in the space file that sets the wrong value. If the space does not set the
        value, the problem is reported in the base.
        """
        of_base = Problems(document)
        of_base.attempt(accelerator_of, replace(document, data=space.base))
        name, places = space.design_name(index), dict(self._places_of(space, index, document))
        for problem in found:
            place = next((where for path, where in places.items() if is_within(problem.path, path)), None)
            if place is not None:
                problem = self._at(place, problem, f"{problem.path} of design {name}: {problem.message}")
            elif problem not in of_base.found:
                problem = replace(problem, message=f"{problem.message}, in design {name}")
            self.problems.found.append(self._of_base(problem) if place is None else problem)
        self._check_further_values([axis for axis in space.axes if axis.settings])

    def _of_base(self, problem: Problem) -> Problem:
        """Problem in the base, with the file and the path at which the wrong value is written. The file is the hardware
        file, a core file, or the space file if it contains the base.
        """
        moved = problem if self.system is None else self.system.told(problem)
        if moved == problem and isinstance(self.entry.accelerator, dict) and problem.file == self.document.file:
            return replace(problem, path=f"accelerator.{problem.path}")
        return moved

    def _places_of(self, space: Space, index: int, document: YamlDocument) -> Iterator[tuple[str, KeyPath]]:
        """Pairs (path in the hardware file as text, place in the space file at which the design's value for this path
        is set)."""
        values = space.design(index).values
        for setter in self.axes.setters:
            if not setter.choice or values[setter.axis] == setter.choice:
                yield document.dotted(setter.path), setter.place
