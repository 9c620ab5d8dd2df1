"""What a comparison of designs takes for granted, in sentences."""

from tilewright.exploration.space import Space
from tilewright.exploration.space_options import SystemOptions
from tilewright.search.options import CoreSearchOptions, SearchOptions


def assumptions(space: Space) -> tuple[str, ...]:
    """What a comparison of the designs of a space takes for granted."""
    options = space.options
    model = f"Model profile {options.model}: energies and areas are those of the hardware file and of its laws."
    mapping = "" if space.mapping is None else " with what the mapping file fixes"
    search = (
        f"mapping of least {options.objective} that {_how(options)}{mapping};"
        f" {_spatial_count(options) or 'all'} spatial mappings are tried where they are open."
    )
    if isinstance(options, SystemOptions):
        return model, f"For each computation node on each core the {search}", *_of_systems(options)
    return (
        model,
        f"For each layer the {search}",
        _kept(options),
        "Layers run one after another; a network is the sum of its layers.",
    )


def _how(options: CoreSearchOptions) -> str:
    engine = options.temporal_mapping_search_engine
    how = {
        "loma": f"all orders of at most {options.lpf_limit} loops"
        if options.lpf_limit
        else "all orders of all loop prime factors",
        "salsa": f"simulated annealing, {options.salsa_restarts} x {options.salsa_iteration_number} steps",
        "exact": f"the exact search, {options.allocation} allocation",
    }[engine]
    return f"{engine} finds ({how})"


def _spatial_count(options: CoreSearchOptions) -> int:
    return options.spatial_count(options.temporal_mapping_search_engine == "exact")


def _kept(options: SearchOptions) -> str:
    if options.exploit_data_locality:
        return "Between layers data stay in the lowest memory that has room for them."
    return "Every layer takes its data from the topmost memory and leaves them there."


def _of_systems(options: SystemOptions) -> tuple[str, str]:
    cut = (
        "as the mapping file says" if options.cn_define_mode is None else f"by cn_define_mode {options.cn_define_mode}"
    )
    return (
        f"Layers are cut into computation nodes {cut}, stacks: {options.mode}.",
        f"The allocation to cores of least {options.objective} among {options.planned_evaluations:,} that a genetic"
        f" algorithm tries, or among all where they are few, by the {options.schedule_model} schedule.",
    )
