"""`tilewright tokens`: costs of tokens of a language model on one or several cores, by context and batch size."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tilewright.base.artifacts.files import FilePath, file_of, make_folder
from tilewright.base.errors import InputError, Problem, Problems, nearest_name
from tilewright.base.harmless import terminal_lines
from tilewright.base.json_values import JsonObject
from tilewright.base.objectives import energy_notices
from tilewright.base.parameters import Limits, OneOf, parameters_of
from tilewright.base.unused import UNUSED, refuse_unused, unused_option, unused_rows
from tilewright.cli.number_lists import batches_of, contexts_of
from tilewright.cli.options import echo_json, keep_font_cache_here
from tilewright.cli.parameter_options import Given, Named, parameter_keywords, store_of
from tilewright.cli.terminal import echo_text
from tilewright.cli.verb import MAPPING_FILE, Help, Paper, Tell, silent, verb
from tilewright.results.sheet import PaperWidth
from tilewright.search.options import CnSearchOptions, CoreSearchOptions, SearchOptions, TokenOptions
from tilewright.tokens.strategies import BEST, CHOICES
from tilewright.workload.language_models.request import DEFAULT_BLOCK

if TYPE_CHECKING:
    from tilewright.base.yamlfile import YamlDocument
    from tilewright.hardware.core import Accelerator
    from tilewright.pipeline.sources import AcceleratorSource, MappingSource, WorkloadSource
    from tilewright.pipeline.stages.base import Control
    from tilewright.search.store import Store
    from tilewright.tokens.table import TokenCosts, TokenCurves

TOKENS = "tokens"
"""Name of the output files without their suffix."""
DEFAULT_CONTEXTS, DEFAULT_BATCHES = "1k:1M:11", "1"


def _priced(
    workload: "WorkloadSource",
    hardware: "AcceleratorSource",
    mapping: "MappingSource",
    contexts: Sequence[int] | str,
    batches: Sequence[int] | str,
    search: Given[TokenOptions],
    prompts: bool,
    key_block: int,
    chunk: int,
    parallel: str,
    output: FilePath | None,
    strict: bool,
    jobs: int,
    store: "FilePath | Store | None",
    tell: Tell = silent,
) -> "tuple[TokenCosts, list[Path]]":
    """Pair (costs of tokens, paths of the written files)."""
    told = Problems()
    numbers = told.attempt(contexts_of, contexts, key_block) or []
    counts = told.attempt(batches_of, batches) or []
    told.finish()
    given, cuts = (workload, hardware, mapping), (key_block, chunk, prompts)
    found, chosen, notices = _found(given, (numbers, counts), search, cuts, parallel, (jobs, store), strict)
    tell(notices)
    return found, _write(found, Path(output), chosen) if output else []


def _show(priced: "tuple[TokenCosts, list[Path]]", verbose: bool, as_json: bool) -> None:
    found, written = priced
    if as_json:
        echo_json(_document(found))
    elif verbose or not written:
        from tilewright.tokens.table import tokens_text

        echo_text(tokens_text(found))
    else:
        echo_text(terminal_lines(map(str, written)), nl=True)


@verb(
    """Compute the time and energy of a language model until the first token, and for each further token.

    The inputs and outputs of every layer are in the top memory. Attention processes keys in blocks, and prompts are cut
    into chunks, so that one search of the layers is enough for all contexts. On several cores each layer is scheduled.

    Example: tilewright tokens --hardware config/hardware/zigzag/tpu_like_vector.yaml --mapping
    config/mapping/zigzag/tpu_like_vector.yaml --workload config/workload/qwen2.5_0.5b_decode.yaml --batches 1,16
    """,
    run=_priced,
    show=_show,
    order="hardware workload mapping contexts batches prompts key_block chunk parallel output",
)
@parameter_keywords(search=TokenOptions)
def tokens(
    workload: Annotated["WorkloadSource", Help("Workload file of a language model; the requests in it are not used.")],
    hardware: Annotated["AcceleratorSource", Help("Hardware file or artifact, with one or several cores.")],
    mapping: Annotated["MappingSource", MAPPING_FILE],
    contexts: Annotated[
        Sequence[int] | str,
        Help("Context lengths in tokens: a list (1k,4k,1M) or first:last:how-many; k means 1,024.", type=str),
    ] = DEFAULT_CONTEXTS,
    batches: Annotated[
        Sequence[int], Help("Batch sizes (numbers of requests): 1,16,256.", type=str, default=DEFAULT_BATCHES)
    ] = (1,),
    options: SearchOptions | None = None,
    *,
    search: Named[TokenOptions],
    prompts: Annotated[bool, Help("Also compute the time to the first token.")] = True,
    key_block: Annotated[int, Limits(least=1), Help("Number of keys in a block of attention.")] = DEFAULT_BLOCK,
    chunk: Annotated[int, Limits(least=1), Help("Number of prompt tokens in a chunk.")] = DEFAULT_BLOCK,
    parallel: Annotated[
        str,
        OneOf(CHOICES),
        Help(
            "Strategy by which several cores share a step; best: the fastest strategy for each context and batch size."
        ),
    ] = BEST,
    output: Annotated[FilePath | None, Help("Folder for tokens.csv, tokens.json, tokens.svg and tokens.png.")] = None,
    strict: bool = False,
    jobs: int = 1,
    store: "FilePath | Store | None" = None,
    paper: Annotated[PaperWidth | None, Paper(("output",))] = None,
) -> "TokenCosts":
    """Costs of tokens of a language model on one or several cores. `table` has a row for each batch size and context.

    The arguments are the options of the command. `paper` (`column` or `page`) draws the figure for a paper. With
    `strict`, input without effect is an error. Raises InputError for wrong input files, and for a workload that is not
    a language model. Raises MappingError if layers have no mapping that fits, or no schedule; the error names these
    layers.
    """
    given = (workload, hardware, mapping, contexts, batches, search.over(options))
    return _priced(*given, prompts, key_block, chunk, parallel, output, strict, jobs, store)[0]


def _found(
    given: tuple[Any, Any, Any],
    points: tuple[list[int], list[int]],
    options: Given[TokenOptions],
    cuts: tuple[int, int, bool],
    parallel: str,
    run: tuple[int, Any],
    strict: bool,
) -> "tuple[TokenCosts, CoreSearchOptions, list[str]]":
    """Triple (costs of tokens, options of the search, notices).

    `given` is (workload, hardware, mapping), `points` is (contexts, batches), `cuts` is (key block, chunk, True if
    prompts are computed), and `run` is (jobs, store).
    """
    from tilewright.hardware.system import MultiCoreAccelerator
    from tilewright.pipeline.sources import parse_accelerator, parse_mapping
    from tilewright.pipeline.stages.base import Control
    from tilewright.tokens.table import token_costs

    told = Problems()
    workload, hardware, mapping = given
    described = told.attempt(described_model, workload, told.notices)
    accelerator = told.attempt(parse_accelerator, hardware, told.notices)
    constraints = told.attempt(parse_mapping, mapping, told.notices)
    told.attempt(options)
    told.finish()
    assert accelerator is not None
    several = isinstance(accelerator, MultiCoreAccelerator)
    described_all = described, accelerator, constraints
    control = Control(run[0], store_of(run[1]))
    curves, chosen = (_on_several if several else _on_one)(described_all, options, cuts, parallel, control)
    prompts = points[0] if cuts[2] else []
    network = curves.layers_of(*points, prompts)
    notices = [
        *told.notices,
        *options.unused(),
        *_notices_of(constraints, file_of(mapping), network, accelerator, hardware),
    ]
    if not cuts[2] and cuts[1] != DEFAULT_BLOCK:
        notices.append(unused_option("chunk", "has no effect without `prompts`", cuts[1]))
    refuse_unused(notices, strict)
    found = token_costs(curves, points[1], points[0], with_prompts=cuts[2])
    without_energy = energy_notices(chosen.objective, [row["energy_per_token_pj"] for row in found.rows])
    refuse_unused(without_energy, strict)
    notices += without_energy
    return replace(found, unused=tuple(unused_rows(notices))), chosen, notices


def _notices_of(mapping: Any, file: str, network: Any, accelerator: "Accelerator", hardware: Any) -> list[str]:
    """Notices of two kinds. The first are on entries and keys of a mapping file that have no effect, because no layer
    uses them. The second are on operands with unexpected widths: the energy of an operation is given for other widths.
    Raises InputError for unknown names in the file.
    """
    from tilewright.mapping.file_checks import document_behind
    from tilewright.mapping.notices import unit_energy_notices_of_cores
    from tilewright.mapping.source import names_unknown_to
    from tilewright.mapping.unused_entries import note_unused_on

    problems = Problems(document_behind(mapping, file))
    if len(accelerator.cores) == 1:
        problems.found += names_unknown_to(mapping, accelerator.cores[0], network, file)
    problems.finish()
    note_unused_on(problems, mapping, network, accelerator.cores)
    return [*problems.notices, *unit_energy_notices_of_cores(network.nodes, accelerator.cores, hardware)]


def _on_one(
    described: tuple[Any, Any, Any],
    options: Given[TokenOptions],
    cuts: tuple[int, int, bool],
    parallel: str,
    control: "Control",
) -> "tuple[TokenCurves, CoreSearchOptions]":
    """Pair (cost curves for one core, options of the search). `cuts` is (key block, chunk, True if prompts are
    computed). Raises InputError if `parallel` needs several cores.
    """
    from tilewright.tokens.layer_figures import LayerFigures
    from tilewright.tokens.table import TokenCurves

    model, accelerator, constraints = described
    chosen = options()
    if parallel != BEST:
        message = f"needs several cores, but {accelerator.name} has one"
        raise InputError([Problem(message, path="parallel", value=parallel, allowed=BEST)])
    figures = LayerFigures(accelerator, constraints, chosen, control)
    return TokenCurves(model, figures, cuts[0], cuts[1]), chosen


def _on_several(
    described: tuple[Any, Any, Any],
    options: Given[TokenOptions],
    cuts: tuple[int, int, bool],
    parallel: str,
    control: "Control",
) -> "tuple[TokenCurves, CoreSearchOptions]":
    """Pair (cost curves for several cores, options of the search). `cuts` is (key block, chunk, True if prompts are
    computed). Raises InputError for an unknown strategy `parallel`, and for options that have no effect on several
    cores.
    """
    from tilewright.tokens.layer_schedules import LayerSchedules
    from tilewright.tokens.system_figures import SystemFigures, strategies_of
    from tilewright.tokens.table import TokenCurves

    if parallel not in CHOICES:
        nearest, allowed = nearest_name(parallel, CHOICES), ", ".join(CHOICES)
        raise InputError(
            [
                Problem(
                    "no such strategy for sharing a step between cores",
                    path="parallel",
                    value=parallel,
                    allowed=allowed,
                    nearest=nearest,
                )
            ]
        )
    model, accelerator, constraints = described
    chosen = _options_of_cores(options)
    schedules = LayerSchedules(accelerator, chosen, control)
    figures = SystemFigures(schedules, constraints, model.model, strategies_of(parallel))
    return TokenCurves(model, figures, cuts[0], cuts[1]), chosen


def _options_of_cores(options: Given[TokenOptions]) -> CnSearchOptions:
    """Options of the verb as options for several cores. If the user gave no model, the model is `corrected`. Raises
    InputError for options that have no effect on several cores.
    """
    options()  # errors are raised as for one core
    known = {parameter.name for parameter in parameters_of(CnSearchOptions)}
    others = [name for name, value in options.values.items() if name not in known and value not in (False, "false")]
    if others:
        why = "because each layer begins and ends in the off-chip memory"
        reasons = {"bounds": "because no bounds are computed for them"}
        found = [Problem(f"has no effect on several cores, {reasons.get(name, why)}", path=name) for name in others]
        raise InputError(found)
    values = {name: value for name, value in options.values.items() if name in known}
    kind: Any = type(options)
    chosen: CnSearchOptions = kind(CnSearchOptions, values)()
    return chosen


def described_model(workload: Any, notices: list[str]) -> Any:
    """Language model in a workload file. Raises InputError if the file has no language model."""
    from tilewright.base.artifacts.digests import LANGUAGE_MODEL
    from tilewright.base.artifacts.files import existing_file
    from tilewright.base.yamlfile import document_of, load_yaml
    from tilewright.workload.language_models.reader import describe_language_model

    file = file_of(workload)
    document = load_yaml(existing_file(file, "workload"), notices) if file else document_of(workload)
    if not isinstance(document.data, dict) or LANGUAGE_MODEL not in document.data:
        raise InputError([Problem("is not a language model", file, allowed=f"a table with `{LANGUAGE_MODEL}`")])
    found = describe_language_model(document, Path(file).stem or "model", notices)
    # Too large positions are reported later, for the cost curves.
    _note_requests(document, notices)
    return found


def _note_requests(document: "YamlDocument", notices: list[str]) -> None:
    """Append notices of unused parts of a workload file to `notices`: the requests, and the size of key blocks.

    Unused requests are not an error, because every workload file of a language model has some.
    """
    problems = Problems(document)
    written = [key for key in ("phase", "batch", "tokens", "context", "requests") if key in document.data]
    if written:
        are = "is" if len(written) == 1 else "are"
        told = f"{', '.join(written)} {are} not used, because contexts and batches come from the options"
        problems.notice((written[0],), told)
    if document.data.get("key_block") is not None:
        problems.unused(
            ("key_block",),
            "has no effect: the option key_block sets the size of key blocks",
            document.data["key_block"],
        )
    notices += problems.notices


def _document(found: "TokenCosts") -> JsonObject:
    from tilewright.base.artifacts.codec import encode

    return {name: value for name, value in encode(found).items() if name != UNUSED or value}


def _write(found: "TokenCosts", output: Path, options: CoreSearchOptions) -> list[Path]:
    keep_font_cache_here()
    from tilewright.base.artifacts.codec import encode
    from tilewright.base.artifacts.envelope import provenance, write_document
    from tilewright.results.paper_tables import write_table
    from tilewright.tokens.figure import write_token_figure
    from tilewright.tokens.table import IN_PAPER, UNITS_IN_PAPER

    make_folder(output)
    tables = write_table(found.table, output / f"{TOKENS}.csv", IN_PAPER, usual=UNITS_IN_PAPER)
    made_by = provenance("tokens", {}, encode(options))
    write_document(output / f"{TOKENS}.json", "tilewright/tokens", _document(found), made_by)
    figures = write_token_figure(found, output / TOKENS)
    return [*tables, output / f"{TOKENS}.json", *figures]
