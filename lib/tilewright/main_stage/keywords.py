"""Keywords of scripts, each with its spellings, the stages that read it, and its counterpart in tilewright."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

ACCELERATOR, WORKLOAD, MAPPING = "accelerator", "workload", "mapping"
FOLDER, PATTERN, PICKLE, PLOT_PATTERN = (
    "dump_folder",
    "dump_filename_pattern",
    "pickle_filename",
    "plot_filename_pattern",
)
SHOW_PROGRESS, KEEP_OTHERS, COST_TABLES = "loma_show_progress_bar", "reduce_minimal_keep_others", "cost_lut_path"
PLOT_NAME, PLOT_FULL, PLOT_TRANSFER = "plot_file_name", "plot_full_schedule", "plot_data_transfer"

_READERS = ("ONNXModelParser", "WorkloadParser", "StreamONNXModelParser", "UserDefinedModelParser")
_SAVES = ("SimpleSave", "CompleteSave", "PlotTemporalMappings", "Dump")
_MINIMAL = ("MinimalLatency", "MinimalEnergy", "MinimalEDP")
_MAPPERS = ("Loma", "Salsa", "TemporalOrderingConversion")


@dataclass(frozen=True)
class Keyword:
    """Keyword argument that a script can give to `MainStage`."""

    name: str
    stages: tuple[str, ...]
    """Stages that read the keyword, under their names in tilewright."""
    also: tuple[str, ...] = ()
    """Other spellings of the keyword that scripts can use."""
    parameter: str = ""
    """Name of the parameter of tilewright that gets the value of the keyword; '' if there is no such parameter."""
    of: tuple[str, ...] = ()
    """Names of the stages of tilewright that have the parameter `parameter`. () stands for the stages in `stages`."""
    says: str = ""
    """Counterpart of the keyword in tilewright, as text for messages."""
    required: bool = False
    """True if every stage in `stages` needs the keyword."""

    @property
    def spellings(self) -> tuple[str, ...]:
        """All spellings of the keyword."""
        return (self.name, *self.also)

    @property
    def holders(self) -> tuple[str, ...]:
        """Names of the stages of tilewright that have the parameter `parameter`."""
        return self.of or self.stages


KEYWORDS = (
    Keyword(ACCELERATOR, ("AcceleratorParser",), ("accelerator_path",), says="--hardware", required=True),
    Keyword(WORKLOAD, _READERS, ("workload_path", "onnx_model_path", "onnx_model"), says="--workload", required=True),
    Keyword(MAPPING, _READERS, ("mapping_path",), says="--mapping", required=True),
    Keyword(FOLDER, _SAVES, says="-o"),
    Keyword(PATTERN, _SAVES, ("filename_pattern",), says="-o"),
    Keyword(PICKLE, ("PickleSave",), says="tilewright export --format pickle"),
    Keyword(PLOT_PATTERN, ("PlotTemporalMappings",), says="tilewright report"),
    Keyword(SHOW_PROGRESS, ("Loma", "Salsa"), says="long searches show their progress on a terminal"),
    Keyword(KEEP_OTHERS, _MINIMAL, says="the stage Dump"),
    Keyword("loma_lpf_limit", ("Loma", "IntraCoreMapping"), ("lpf_limit",), "lpf_limit"),
    Keyword(
        *("nb_mappings_generated", ("SpatialMappingGenerator",), ("nb_spatial_mappings_generated",)),
        parameter="nb_spatial_mappings_generated",
    ),
    Keyword(
        *("enable_mix_spatial_mapping_generation", ("SpatialMappingGenerator",), ("enable_mix_spatial_mapping",)),
        parameter="enable_mix_spatial_mapping",
    ),
    Keyword("temporal_mapping_type", _MAPPERS, (), "temporal_mapping_type", ("SpatialMappingConversion",)),
    Keyword(
        *("access_same_data_considered_as_no_access", ("CostModel",), ()),
        parameter="access_same_data_considered_as_no_access",
        of=("SpatialMappingConversion",),
    ),
    Keyword("salsa_iteration_number", ("Salsa",), (), "salsa_iteration_number"),
    Keyword("salsa_start_temperature", ("Salsa",), (), "salsa_start_temperature"),
    Keyword("salsa_opt_criterion", ("Salsa",), (), "objective"),
    Keyword("salsa_number_of_core", ("Salsa",), (), "salsa_restarts"),
    Keyword(
        *("workload_data_always_from_top_mem", ("SearchUnusedMemory",), ()),
        parameter="workload_data_always_from_top_mem",
    ),
    Keyword("cn_define_mode", ("GenerateCNWorkloadHybrid",), ("CN_define_mode",), "cn_define_mode"),
    Keyword("hint_loops", ("GenerateCNWorkloadHybrid",), (), "hint_loops"),
    Keyword("layer_cutoffs", ("GenerateCNWorkloadHybrid",), (), "layer_cutoffs"),
    Keyword("layer_stacks", ("GenerateCNWorkloadHybrid",), (), "layer_stacks"),
    Keyword("mode", ("GenerateCNWorkloadHybrid",), (), "mode"),
    Keyword("split_W_percentage", ("GenerateCNWorkloadHybrid", "LayerSplitting"), (), "split_W_percentage"),
    Keyword("split_W_double_buffered", ("LayerSplitting",), (), "split_W_double_buffered"),
    Keyword("split_onnx_model_path", ("LayerSplitting",), (), "split_onnx_model_path"),
    Keyword(
        *(COST_TABLES, ("IntraCoreMapping",), ("node_hw_performances_path",)),
        says="--store; in addition, each run writes its cost tables as files",
    ),
    Keyword("nb_ga_individuals", ("InterCoreMapping",), (), "nb_ga_individuals"),
    Keyword("nb_ga_generations", ("InterCoreMapping",), (), "nb_ga_generations"),
    Keyword("plot_hof", ("InterCoreMapping",), (), "plot_hof"),
    Keyword(PLOT_NAME, ("InterCoreMapping",), (), says="tilewright report"),
    Keyword(PLOT_FULL, ("InterCoreMapping",), (), says="tilewright report"),
    Keyword(PLOT_TRANSFER, ("InterCoreMapping",), (), says="tilewright report"),
    Keyword(*("scheduler_candidate_selection", ("InterCoreMapping",), ()), parameter="scheduler_candidate_selection"),
    Keyword("operands_to_prefetch", ("InterCoreMapping",), (), "operands_to_prefetch"),
)
"""Keywords, in the order in which messages list them. The spellings come from zigzag-dse 2.4, from zigzag-dse 3.9.1,
and from Stream until 2024.
"""

NO_COUNTERPART = {
    "enable_weight_diagonal_mapping": "tilewright generates no spatial mappings along a diagonal",
    "enable_speedup": "tilewright always computes the costs of loop orders in batches",
    "nb_multiprocessing_threads": "searches use threads: --jobs",
    "visualize_node_hw_performances_path": "tilewright report draws the costs of the cores",
}
"""Keyword without a counterpart -> text that describes the behaviour of tilewright instead."""

BY_SPELLING: Mapping[str, Keyword] = {spelling: keyword for keyword in KEYWORDS for spelling in keyword.spellings}


def given(keywords: Mapping[str, Any], name: str, default: Any = None) -> Any:
    """Value of a keyword, given in any of its spellings; `default` if the script does not give the keyword."""
    return next((keywords[spelling] for spelling in BY_SPELLING[name].spellings if spelling in keywords), default)


def spelling_of(keywords: Iterable[str], name: str) -> str:
    """Spelling in which a script gives a keyword; the first spelling if the script does not give it."""
    return next((spelling for spelling in BY_SPELLING[name].spellings if spelling in keywords), name)


def plain(value: Any) -> Any:
    """Value in the form of a configuration. Members of enumerations become texts, and tuples become lists."""
    if isinstance(value, str):
        return str(getattr(value, "value", value))
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return value
