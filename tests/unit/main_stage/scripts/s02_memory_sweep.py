# A thesis: sizes of a memory are swept by a stage of its own, deep copies of the accelerator.
import sys
from copy import deepcopy
from zigzag.stages.stage import Stage
from zigzag.stages.main import MainStage
from zigzag.stages.results.reduce_stages import MinimalLatencyStage, SumStage
from zigzag.stages.parser.accelerator_parser import AcceleratorParserStage
from zigzag.stages.parser.workload_parser import WorkloadParserStage
from zigzag.stages.workload_iterator import WorkloadStage
from zigzag.stages.mapping.spatial_mapping_generation import SpatialMappingGeneratorStage
from zigzag.stages.mapping.temporal_mapping_generator_stage import TemporalMappingGeneratorStage
from zigzag.stages.evaluation.cost_model_evaluation import CostModelStage


class MemorySweep(Stage):
    def __init__(self, list_of_callables, *, accelerator, memory_to_sweep, factors, **kwargs):
        super().__init__(list_of_callables, **kwargs)
        self.accelerator, self.memory_to_sweep, self.factors = accelerator, memory_to_sweep, factors

    def run(self):
        for factor in self.factors:
            accelerator = deepcopy(self.accelerator)
            for level in accelerator.memory_hierarchy.topological_sort():
                if level.memory_instance.name == self.memory_to_sweep:
                    level.memory_instance.size *= factor
            sub = self.list_of_callables[0](self.list_of_callables[1:], accelerator=accelerator, **self.kwargs)
            for cme, extra_info in sub.run():
                yield cme, (factor, extra_info)


answers = MainStage(
    [AcceleratorParserStage, WorkloadParserStage, MemorySweep, SumStage, WorkloadStage, MinimalLatencyStage,
     SpatialMappingGeneratorStage, MinimalLatencyStage, TemporalMappingGeneratorStage, CostModelStage],
    accelerator=sys.argv[1], workload=sys.argv[2], mapping=sys.argv[3], loma_lpf_limit=3,
    memory_to_sweep=sys.argv[4], factors=(1, 4)).run()
for cme, (factor, _) in answers:
    print(f"{factor};{cme.energy_total!r};{cme.latency_total2!r}")
