# The script of Stream's page on stages, with its twenty keywords: names of files in front of it.
import sys

from stream.classes.stages import *
from zigzag.classes.stages import *

accelerator, workload_path, mapping_path = sys.argv[1:4]
CN_define_mode = 1
hint_loops = [("OY", "all")]
cost_lut_path = "outputs/cost_lut.pickle"
plot_file_name = "outputs/schedule"
plot_full_schedule = True
plot_data_transfer = True
split_onnx_model_path = "outputs/split.onnx"
split_W_double_buffered = False

mainstage = MainStage(
    [
        AcceleratorParserStage,
        StreamONNXModelParserStage,
        LayerSplittingStage,
        StreamONNXModelParserStage,
        GenerateCNWorkloadHybridStage,
        IntraCoreMappingStage,
        InterCoreMappingStage,
    ],
    accelerator=accelerator,
    workload_path=workload_path,
    mapping_path=mapping_path,
    loma_lpf_limit=6,
    nb_ga_individuals=32,
    nb_ga_generations=100,
    cost_lut_path=cost_lut_path,
    plot_hof=True,
    plot_file_name=plot_file_name,
    plot_full_schedule=plot_full_schedule,
    plot_data_transfer=plot_data_transfer,
    cn_define_mode=CN_define_mode,
    hint_loops=hint_loops,
    scheduler_candidate_selection="memory",
    operands_to_prefetch=[],
    split_onnx_model_path=split_onnx_model_path,
    split_W_double_buffered=split_W_double_buffered,
)
scme, _ = mainstage.run()
scme = scme[0]
print(f"latency {scme.latency}, energy {scme.energy}")
