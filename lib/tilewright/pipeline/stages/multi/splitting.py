"""Stage LayerSplitting, which splits layers whose weights are too large for the cores."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.base.artifacts.files import file_of, make_folder, write_atomically
from tilewright.base.errors import InputError, Problem, Problems
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.mapping.file_checks import document_behind
from tilewright.mapping.plan_forms import applied_plan
from tilewright.mapping.source import parse_mapping
from tilewright.multicore.nodes.layer_splitting import SplitNetwork, open_model, split_layers
from tilewright.multicore.nodes.tiling_options import SplitOptions
from tilewright.pipeline.stages.base import Change
from tilewright.pipeline.stages.descriptions import Descriptions
from tilewright.pipeline.stages.multi.items import MODEL
from tilewright.workload.source import NETWORK, kind_of_source, read_network

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True)
class LayerSplitting(SplitOptions, Change):
    """Splits layers of an ONNX model along output channels, and reads the resulting network. The weights of each part
    then fit the memory of every core that is allowed to run the layer.

    This stage must come after the stages that read network and hardware. In a configuration, `split_layers: true` adds
    this stage.

    Example: [StreamONNXModelParser, AcceleratorParser, LayerSplitting, GenerateCNWorkloadHybrid, IntraCoreMapping,
    InterCoreMapping]
    """

    split_onnx_model_path: str = ""
    """Path of the file into which the network with split layers is written; by default no file is written."""

    takes = Descriptions
    gives = Descriptions
    needs = ("AcceleratorParser",)
    stands_for = "LayerSplittingStage"

    def change(self, item: Descriptions) -> Descriptions:
        """Descriptions with the network after layers were split. Errors are reported together with errors in hardware,
        workload and mapping.
        """
        if item.network is None and not item.problems:
            message = (
                "LayerSplitting has no network to split: put the stage that reads the network before LayerSplitting"
            )
            return replace(item, problems=(Problem(message, path="pipeline"),))
        if not isinstance(item.accelerator, MultiCoreAccelerator) or item.network is None:
            return item  # a later stage reports the problem
        try:
            split = self._split(item)
            name = item.network.name
            network, coverage = read_network(split.model, MODEL, item.network_options, name)
        except InputError as error:
            return replace(item, problems=tuple(dict.fromkeys((*item.problems, *error.problems))))
        if self.split_onnx_model_path:
            path = Path(self.split_onnx_model_path)
            make_folder(path.parent)
            write_atomically(path, split.model.SerializeToString(deterministic=True))
        notices = (*item.notices, *split.notices)
        return replace(item, workload=split.model, network=network, coverage=coverage, notices=notices)

    def _split(self, item: Descriptions) -> SplitNetwork:
        assert isinstance(item.accelerator, MultiCoreAccelerator)
        assert item.network is not None
        if item.mapping is None:
            raise InputError("no mapping is given")
        written = parse_mapping(item.mapping, [], plans=True)
        told = Problems(document_behind(written, file_of(item.mapping)))
        mapping = applied_plan(written, item.network, item.accelerator, told)
        told.finish()
        return split_layers(_model_of(item), item.network, item.accelerator, mapping, self, item.network_options)


def _model_of(item: Descriptions) -> "onnx.ModelProto":
    """ONNX model in the descriptions. Raises InputError if the workload is not an ONNX model."""
    source = item.workload
    if source is None or kind_of_source(source) != NETWORK:
        raise InputError("only layers of ONNX models can be split, not lists of layers")
    if isinstance(source, str | Path):
        return open_model(Path(source))
    return source  # type: ignore[return-value]
