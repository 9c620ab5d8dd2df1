# Plots of the package, which are not here: the script says so when it gets there.
import sys
from zigzag.visualization.results.plot_cme import bar_plot_cost_model_evaluations_breakdown
from zigzag.classes.stages import *

answers = MainStage(
    [WorkloadParserStage, AcceleratorParserStage, WorkloadStage, MinimalLatencyStage, SpatialMappingGeneratorStage,
     LomaStage, CostModelStage],
    accelerator=sys.argv[1], workload=sys.argv[2], mapping=sys.argv[3], loma_lpf_limit=2).run()
print(len(answers))
bar_plot_cost_model_evaluations_breakdown([cme for cme, _ in answers], "outputs/breakdown.png")
