"""`tilewright serving`: operator times of a language model on a core, in files for simulators of serving."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tilewright.base.artifacts.files import FilePath, make_folder, write_atomically
from tilewright.base.errors import InputError, Problem, nearest_name
from tilewright.cli.options import FILE, common_options, echo_notices, echo_paths, store_options
from tilewright.cli.parameter_options import Given, Named, parameter_keywords, parameter_options, store_of
from tilewright.cli.tokens import described_model
from tilewright.peers.llmservingsim.releases import MOST_CONTEXT, RELEASES
from tilewright.search.options import SearchOptions
from tilewright.workload.language_models.request import DEFAULT_BLOCK

if TYPE_CHECKING:
    from tilewright.pipeline.sources import AcceleratorSource, MappingSource, WorkloadSource
    from tilewright.search.store import Store
    from tilewright.tokens.serving import ServingProfile

MAX_TOKENS, MAX_REQUESTS = 2048, 256
_COUNT = click.IntRange(min=1)


@click.command()
@click.option("--hardware", required=True, type=FILE, help="Hardware file or artifact; it needs a clock.")
@click.option(
    "--workload", required=True, type=FILE, help="Workload file of a language model; its requests are not used."
)
@click.option("--mapping", required=True, type=FILE, help="Mapping file or artifact.")
@click.option(
    "--format",
    "form",
    required=True,
    type=click.Choice(RELEASES),
    help="What to write: the profile of LLMServingSim, from this release on.",
)
@click.option("--max-tokens", type=_COUNT, default=MAX_TOKENS, show_default=True, help="New tokens of a step.")
@click.option("--max-requests", type=_COUNT, default=MAX_REQUESTS, show_default=True, help="Requests side by side.")
@click.option("--max-context", type=_COUNT, help="Tokens in a cache; default: 2048, from 1.1 on 16384.")
@click.option("--key-block", type=_COUNT, default=DEFAULT_BLOCK, show_default=True, help="Keys at a time.")
@click.option("--served-model-name", default="", help="Of the model in the simulator; default: of its configuration.")
@click.option("--hardware-name", default="", help="Of the hardware in the simulator; default: of the core.")
@click.option("--variant", default="", help="Folder of the precision, from 1.1 on; default: by bits, such as int8.")
@click.option("-o", "--output", required=True, type=FILE, help="Folder for the profile.")
@parameter_options(SearchOptions, "options")
@store_options
@common_options
def command(
    hardware: Path,
    workload: Path,
    mapping: Path,
    form: str,
    max_tokens: int,
    max_requests: int,
    max_context: int | None,
    key_block: int,
    served_model_name: str,
    hardware_name: str,
    variant: str,
    output: Path,
    options: Given[SearchOptions],
    jobs: int,
    store: Path,
    no_store: bool,
    verbose: bool,
    as_json: bool,
) -> None:
    """Write operator times of a language model on a core, as the profile of a simulator of serving.

    Every layer begins and ends in the top memory, and attention processes keys in blocks, as in `tilewright tokens`.

    Example: tilewright serving --hardware core_with_clock.yaml --mapping config/mapping/tpu_like_vector.yaml --workload
    config/workload/llama_3.1_8b_decode.yaml --format llmservingsim-1.1 --served-model-name
    meta-llama/Llama-3.1-8B -o results/serving
    """
    notices: list[str] = []
    found = _found(
        (workload, hardware, mapping),
        (form, max_tokens, max_requests, max_context, key_block),
        (hardware_name, served_model_name, variant),
        options(),
        (jobs, None if no_store else store),
        notices,
    )
    echo_notices([*notices, *found.notes])
    echo_paths(_write(found, output), as_json)


@parameter_keywords(search=SearchOptions)
def serving(
    workload: "WorkloadSource",
    hardware: "AcceleratorSource",
    mapping: "MappingSource",
    form: str = RELEASES[-1],
    options: SearchOptions | None = None,
    *,
    search: Named[SearchOptions],
    max_tokens: int = MAX_TOKENS,
    max_requests: int = MAX_REQUESTS,
    max_context: int | None = None,
    key_block: int = DEFAULT_BLOCK,
    served_model_name: str = "",
    hardware_name: str = "",
    variant: str = "",
    output: FilePath | None = None,
    jobs: int = 1,
    store: "FilePath | Store | None" = None,
) -> "ServingProfile":
    """Operator times of a language model on a core; `files` has them as simulators of serving read them.

    Arguments are those of the command. Raises InputError for wrong descriptions, for a workload that is no language
    model or whose layers the simulator does not have, for a core without a clock, and for an accelerator with several
    cores; MappingError with the layers that have no mapping that fits.
    """
    if form not in RELEASES:
        allowed, nearest = ", ".join(RELEASES), nearest_name(str(form), RELEASES)
        raise InputError([Problem("is no format", path="form", value=str(form), allowed=allowed, nearest=nearest)])
    found = _found(
        (workload, hardware, mapping),
        (form, max_tokens, max_requests, max_context, key_block),
        (hardware_name, served_model_name, variant),
        search.over(options)(),
        (jobs, store),
        [],
    )
    if output:
        _write(found, Path(output))
    return found


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
