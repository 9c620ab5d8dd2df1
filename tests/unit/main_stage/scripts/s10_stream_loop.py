# Stream: rows by rows against layer by layer, and the numbers of the best.
import sys
from stream.classes.stages import *
from zigzag.classes.stages import *

for name, mode, hints in (("fused", 1, [("OY", "all")]), ("lbl", 1, [])):
    mainstage = MainStage(
        [AcceleratorParserStage, StreamONNXModelParserStage, GenerateCNWorkloadHybridStage, IntraCoreMappingStage,
         InterCoreMappingStage],
        accelerator=sys.argv[1], workload_path=sys.argv[2], mapping_path=sys.argv[3], loma_lpf_limit=6,
        nb_ga_individuals=4, nb_ga_generations=1, node_hw_performances_path=f"outputs/{name}.pickle",
        plot_hof=False, plot_file_name="", plot_full_schedule=False, plot_data_transfer=False,
        cn_define_mode=mode, hint_loops=hints, scheduler_candidate_selection="latency", operands_to_prefetch=[])
    scme, _ = mainstage.run()
    scme = scme[0]
    print(f"{name};{scme.latency};{scme.energy!r}")
