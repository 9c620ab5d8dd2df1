"""`tilewright serving`: operator times of a language model on a core, as input files of serving simulators."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tilewright.base.artifacts.files import FilePath, make_folder, write_atomically
from tilewright.base.errors import InputError, Problem, nearest_name
from tilewright.base.parameters import Limits, OneOf
from tilewright.cli.options import echo_paths
from tilewright.cli.parameter_options import Given, Named, parameter_keywords, store_of
from tilewright.cli.tokens import described_model
from tilewright.cli.verb import MAPPING_FILE, Help, Tell, silent, verb
from tilewright.peers.llmservingsim.releases import MOST_CONTEXT, RELEASES
from tilewright.search.options import SearchOptions
from tilewright.workload.language_models.request import DEFAULT_BLOCK

if TYPE_CHECKING:
    from tilewright.pipeline.sources import AcceleratorSource, MappingSource, WorkloadSource
    from tilewright.search.store import Store
    from tilewright.tokens.serving import ServingProfile

MAX_TOKENS, MAX_REQUESTS = 2048, 256


def _profile(
    workload: "WorkloadSource",
    hardware: "AcceleratorSource",
    mapping: "MappingSource",
    form: str,
    search: Given[SearchOptions],
    max_tokens: int,
    max_requests: int,
    max_context: int | None,
    key_block: int,
    served_model_name: str,
    hardware_name: str,
    variant: str,
    output: FilePath | None,
    jobs: int,
    store: "FilePath | Store | None",
    tell: Tell = silent,
) -> "tuple[ServingProfile, list[Path]]":
    """Pair (operator times, paths of the written files)."""
    notices: list[str] = []
    found = _found(
        (workload, hardware, mapping),
        (form, max_tokens, max_requests, max_context, key_block),
        (hardware_name, served_model_name, variant),
        search(),
        (jobs, store),
        notices,
    )
    tell([*notices, *found.notes])
    return found, _write(found, Path(output)) if output else []


@verb(
    """Write the operator times of a language model on a core as a profile for a serving simulator.

    The inputs and outputs of every layer are in the top memory. Attention processes keys in blocks, as in `tilewright
    tokens`.

    Example: tilewright serving --hardware core_with_clock.yaml --mapping config/mapping/zigzag/tpu_like_vector.yaml
    --workload config/workload/llama_3.1_8b_decode.yaml --format llmservingsim-1.1 --served-model-name
    meta-llama/Llama-3.1-8B -o results/serving
    """,
    run=_profile,
    show=lambda made, as_json: echo_paths(made[1], as_json),
    order="hardware workload mapping form max_tokens max_requests max_context key_block served_model_name"
    " hardware_name variant output",
)
@parameter_keywords(search=SearchOptions)
def serving(
    workload: Annotated["WorkloadSource", Help("Workload file of a language model; the requests in it are not used.")],
    hardware: Annotated["AcceleratorSource", Help("Hardware file or artifact; the hardware needs a clock frequency.")],
    mapping: Annotated["MappingSource", MAPPING_FILE],
    form: Annotated[
        str,
        OneOf(tuple(RELEASES)),
        Help(
            "Simulator that reads the profile, with its first release that reads this format.",
            "--format",
            is_required=True,
        ),
    ] = RELEASES[-1],
    options: SearchOptions | None = None,
    *,
    search: Named[SearchOptions],
    max_tokens: Annotated[int, Limits(least=1), Help("Limit on the new tokens in a step.")] = MAX_TOKENS,
    max_requests: Annotated[int, Limits(least=1), Help("Limit on the requests in a batch.")] = MAX_REQUESTS,
    max_context: Annotated[
        int | None,
        Limits(least=1),
        Help("Limit on the tokens in a cache; default: 2048, or 16384 for format 1.1 and later."),
    ] = None,
    key_block: Annotated[int, Limits(least=1), Help("Number of keys in a block of attention.")] = DEFAULT_BLOCK,
    served_model_name: Annotated[
        str, Help("Name of the model in the simulator; default: the name in the model configuration.")
    ] = "",
    hardware_name: Annotated[str, Help("Name of the hardware in the simulator; default: the name of the core.")] = "",
    variant: Annotated[
        str,
        Help(
            "Name of the folder for the precision, for format 1.1 and later; default: made from the bits, such as int8."
        ),
    ] = "",
    output: Annotated[FilePath | None, Help("Folder for the profile.", is_required=True)] = None,
    jobs: int = 1,
    store: "FilePath | Store | None" = None,
) -> "ServingProfile":
    """Operator times of a language model on a core. `files` of the result has the texts for the serving simulator.

    The arguments are the options of the command. Raises InputError for wrong input files, for a core without a clock
    frequency, and for an accelerator with several cores. Also raises InputError for a workload that is not a language
    model, or has layers that the simulator does not know. Raises MappingError if layers have no mapping that fits; the
    error names these layers.
    """
    if form not in RELEASES:
        allowed, nearest = ", ".join(RELEASES), nearest_name(str(form), RELEASES)
        raise InputError(
            [Problem("is not a known format", path="form", value=str(form), allowed=allowed, nearest=nearest)]
        )
    given = (workload, hardware, mapping, form, search.over(options), max_tokens, max_requests, max_context)
    names = (served_model_name, hardware_name, variant)
    return _profile(*given, key_block, *names, output, jobs, store)[0]


def _found(
    given: tuple[Any, Any, Any],
    extent: tuple[str, int, int, int | None, int],
    names: tuple[str, str, str],
    options: SearchOptions,
    run: tuple[int, Any],
    notices: list[str],
) -> "ServingProfile":
    from tilewright.peers.llmservingsim.points import ProfileLimits
    from tilewright.pipeline.sources import parse_accelerator, parse_mapping
    from tilewright.pipeline.stages.base import Control
    from tilewright.tokens.layer_figures import LayerFigures
    from tilewright.tokens.serving import ProfileNames, serving_profile

    form, tokens, requests, context, key_block = extent
    most = MOST_CONTEXT[form] if context is None else context
    counts = {"max_tokens": tokens, "max_requests": requests, "max_context": most}
    counts["key_block"] = key_block
    wrong = [
        Problem("must be a whole number", path=name, value=str(value), allowed="from 1 on")
        for name, value in counts.items()
        if isinstance(value, bool) or not isinstance(value, int) or value < 1
    ]
    if wrong:
        raise InputError(wrong)
    workload, hardware, mapping = given
    described = described_model(workload, notices)
    control = Control(run[0], store_of(run[1]))
    figures = LayerFigures(
        parse_accelerator(hardware),  # type: ignore[arg-type]
        parse_mapping(mapping),
        options,
        control,
        with_limits=False,
    )
    limits = ProfileLimits(tokens, requests, most)
    return serving_profile(described, figures, form, limits, ProfileNames(*names), key_block)


def _write(found: "ServingProfile", output: Path) -> list[Path]:
    written = []
    for place, text in found.files.items():
        path = output / place
        make_folder(path.parent)
        write_atomically(path, text)
        written.append(path)
    return written
