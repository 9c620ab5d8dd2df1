"""`tilewright validate`: check of files that reports all errors at once."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Annotated

from tilewright.base.artifacts.files import FilePath
from tilewright.base.errors import Caution, InputError, Problem, Problems, count_of
from tilewright.base.json_values import JsonObject
from tilewright.base.parameters import OneOf
from tilewright.base.unused import refuse_unused, to_tell, with_unused
from tilewright.cli.options import echo_json, echo_notices, repeated_options
from tilewright.cli.terminal import echo
from tilewright.cli.verb import Argument, Help, verb

KINDS = ("hardware", "workload", "mapping", "config", "space", "artifact")


_Checked = list[tuple[Path, str, list[Problem], list[str]]]
"""Tuple (file, kind, problems, notices) for each of several files."""


def _checked(files: Sequence[Path], kind: str | None, strict: bool) -> _Checked:
    """Results of the checks, one for each file. The results of a mapping file also have its conflicts with the hardware
    and the workload in `files` (`_together`).
    """
    checked = [(file, *validate_file(file, kind, strict)) for file in files]
    together = _together(checked)
    if together is None:
        return checked
    known = {notice for *_, own in checked for notice in own}
    notices = [notice for notice in together.notices if notice not in known]
    together.attempt(refuse_unused, notices, strict)
    return [
        (file, told, [*found, *together.found], [*own, *notices]) if told == "mapping" else (file, told, found, own)
        for file, told, found, own in checked
    ]


def _show(checked: _Checked, strict: bool, as_json: bool) -> None:
    if as_json:
        echo_json([with_unused(_row(file, told, found, notices), notices) for file, told, found, notices in checked])
    else:
        echo_notices(to_tell([notice for *_, notices in checked for notice in notices], strict), with_remarks=True)
        for file, told, found, notices in checked:
            if not found:
                warned = len(_warnings(notices))
                result = f"no errors, {count_of(warned, 'warning')}" if warned else "no problems"
                echo(f"{file}: {told}, {result}")
    refused = Problems()
    refused.found += [problem for _, _, found, _ in checked for problem in found]
    refused.attempt(refuse_unused, repeated_options(), strict)
    refused.finish()


def _warnings(notices: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(notice for notice in notices if isinstance(notice, Caution)))


def _row(file: Path, kind: str, found: Sequence[Problem], notices: Sequence[str]) -> JsonObject:
    warned = _warnings(notices)
    row: JsonObject = {"file": str(file), "kind": kind, "problems": list(map(str, found))}
    return row | ({"warnings": list(map(str, warned))} if warned else {})


@verb(
    """Check hardware, workload, mapping and configuration FILES, design spaces, and artifacts.

    If FILES has one mapping file, and also one hardware file, one workload or both, the command also checks the mapping
    against them. It reports entries, loops and units of the array that are not used. A warning names a number that no
    real part has, or values of an axis that make the first design of a space invalid. Warnings are not errors, so
    they leave the exit code at 0.

    Example: tilewright validate config/hardware/*.yaml config/mapping/*.yaml
    """,
    run=_checked,
    show=_show,
)
def validate(
    files: Annotated[FilePath | Sequence[FilePath], Argument(is_required=True)],
    kind: Annotated[str | None, OneOf(KINDS), Help("Kind of the files; default: detected from their content.")] = None,
    *,
    strict: Annotated[bool, Help("Report input without effect as a problem.")] = False,
) -> tuple[Problem, ...]:
    """Problems of one or several files; () if the files have no problems.

    A file is hardware, a workload (YAML or ONNX), a mapping, a configuration, a design space or an artifact. `kind` is
    one of KINDS, or None to detect the kind from the content. With `strict`, input without effect is a problem too. One
    mapping file is also checked against one hardware file and one workload, if they are given.
    """
    given = [files] if isinstance(files, str | PathLike) else files
    return tuple(
        problem for *_, found, _ in _checked([Path(file) for file in given], kind, strict) for problem in found
    )


def validate_file(file: Path, kind: str | None = None, strict: bool = False) -> tuple[str, list[Problem], list[str]]:
    """Triple (kind of a file, its problems, notices on unusual content). The kind is '' if it cannot be detected. With
    `strict`, input without effect is also a problem.
    """
    notices: list[str] = []
    told = kind or ""
    try:
        told = kind or kind_of(file)
        _validate(file, told, notices)
        refuse_unused(notices, strict)
    except InputError as error:
        return told, list(error.problems), notices
    return told, [], notices


def _together(checked: _Checked) -> Problems | None:
    """Problems and notices of a mapping file that are found by checking it against a hardware file and a workload.

    The check needs exactly one mapping file, and at least one other file: a hardware file or a workload. Files with
    problems are not used. If there are several hardware files, none of them is used; the same holds for workloads.
    Returns None if the check is not possible.
    """
    files: dict[str, list[Path]] = {"mapping": [], "hardware": [], "workload": []}
    for path, told, found, _ in checked:
        if told in files and not found:
            files[told].append(path)
    counts = {told: sum(one == told for _, one, *_ in checked) for told in files}
    others = [told for told in ("hardware", "workload") if counts[told] == 1 and files[told]]
    if counts["mapping"] != 1 or not files["mapping"] or not others:
        return None
    from tilewright.mapping.file_checks import (
        check_mapping_against_core,
        check_mapping_against_workload,
        document_behind,
    )
    from tilewright.mapping.notices import note_idle_units
    from tilewright.mapping.runnable import can_run
    from tilewright.mapping.spatial_generation import cuts_by_array, note_cut_lanes, note_excess_lanes
    from tilewright.mapping.unused_entries import note_unused, note_unused_on, note_unusual_loops
    from tilewright.pipeline.sources import parse_accelerator, parse_mapping
    from tilewright.workload.source import parse_workload

    mapping, file = parse_mapping(files["mapping"][0], plans=True), str(files["mapping"][0])
    if mapping.plan is not None:
        return _plan_together(files, others)
    cores = parse_accelerator(files["hardware"][0]).cores if "hardware" in others else ()
    workload = parse_workload(files["workload"][0]) if "workload" in others else None
    problems = Problems(document_behind(mapping, file))
    for core in cores if len(cores) == 1 else ():
        problems.found += check_mapping_against_core(mapping, core, file)
        note_idle_units(problems, mapping, core, workload)
        if workload is None:
            note_excess_lanes(problems, mapping, core)
        else:
            nodes = [node.layer for node in workload.nodes if node.layer is not None and can_run(core, node)]
            pairs = [(layer, mapping.constraints_for(layer)) for layer in nodes]
            cuts = [(layer.name, entry, [*cuts_by_array(layer, core, entry)]) for layer, entry in pairs]
            note_cut_lanes(problems, mapping, cuts)
    if cores and workload is None:
        note_unusual_loops(problems, mapping)
    if workload is not None:
        problems.found += check_mapping_against_workload(mapping, workload, file)
    if cores:
        note_unused_on(problems, mapping, workload, cores)
    elif workload is not None:
        note_unused(problems, mapping, workload)
    return problems


def _plan_together(files: dict[str, list[Path]], others: list[str]) -> Problems | None:
    """Problems and notices from a check of a network plan (a mapping file with tiles, stacks or cores) against an
    accelerator and a network. None if the files do not have both.
    """
    from tilewright.hardware.system import MultiCoreAccelerator
    from tilewright.multicore.nodes.tiling_options import TilingOptions
    from tilewright.pipeline.sources import parse_accelerator
    from tilewright.pipeline.stages.descriptions import Descriptions
    from tilewright.pipeline.stages.preflight.network import preflight, read_checked

    if len(others) != 2 or not isinstance(parse_accelerator(files["hardware"][0]), MultiCoreAccelerator):
        return None
    told = Problems()
    given = Descriptions(files["hardware"][0], files["workload"][0], files["mapping"][0])
    problem = told.attempt(read_checked, given, TilingOptions())
    if problem is not None:
        found = preflight(problem, TilingOptions())
        told.found += found.problems
        told.notices += [*problem.notices, *found.notices]
    return told


def kind_of(file: Path) -> str:
    """Kind of a file, detected from its suffix and its content. Raises InputError if it cannot be detected."""
    from tilewright.base import file_kinds
    from tilewright.base.artifacts.envelope import is_artifact
    from tilewright.base.yamlfile import load_yaml
    from tilewright.pipeline.sources import existing_file

    path = existing_file(file)
    if is_artifact(path):
        return "artifact"
    if path.suffix == ".onnx":
        return "workload"
    kind = file_kinds.kind_of(load_yaml(path).data)
    if kind in KINDS:
        return kind
    raise InputError(
        [
            Problem(
                "is neither hardware, workload, mapping, configuration nor design space; use the option kind", str(path)
            )
        ]
    )


def _validate(file: Path, kind: str, notices: list[str]) -> None:
    if kind == "hardware":
        from tilewright.base.yamlfile import load_yaml
        from tilewright.hardware.yaml_reader import check_hardware_file

        check_hardware_file(load_yaml(file, notices), notices)
    elif kind == "mapping":
        from tilewright.mapping.file_checks import document_behind
        from tilewright.mapping.unused_entries import note_overruled
        from tilewright.mapping.yaml_reader import read_mapping

        mapping = read_mapping(file, notices, plans=True)
        problems = Problems(document_behind(mapping, str(file)))
        note_overruled(problems, mapping)
        notices += problems.notices
    elif kind == "workload":
        _validate_workload(file, notices)
    elif kind == "space":
        from tilewright.designs.space_reader import read_space
        from tilewright.designs.tried_values import value_cautions
        from tilewright.designs.unused_parts import unused_of_networks

        space = read_space(file, notices)
        notices += unused_of_networks(space)
        notices += value_cautions(space)
        notices.append(f"{file}: {space.size_text()}")
    elif kind == "artifact":
        from tilewright.base.artifacts.envelope import read_artifact

        read_artifact(file)
    else:
        from tilewright.cli.config import read_config

        notices += read_config(file).unused


def _validate_workload(file: Path, notices: list[str]) -> None:
    from tilewright.workload.source import LAYERS, kind_of_source, parse_workload, read_layers

    if kind_of_source(file) == LAYERS:
        read_layers(file, notices)
    else:
        parse_workload(file, notices=notices)
