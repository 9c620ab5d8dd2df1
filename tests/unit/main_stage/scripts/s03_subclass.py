# A stage that inherits from one of the package and looks at what that yields.
import sys
from zigzag.classes.stages.ReduceStages import MinimalLatencyStage
from zigzag.classes.stages import *


class TalkingStage(MinimalLatencyStage):
    def run(self):
        for cme, extra_info in super().run():
            print(f"{cme.layer.name};{cme.latency_total2!r}")
            yield cme, extra_info


MainStage([WorkloadParserStage, AcceleratorParserStage, WorkloadStage, TalkingStage, SpatialMappingGeneratorStage,
           MinimalLatencyStage, LomaStage, CostModelStage],
          accelerator=sys.argv[1], workload=sys.argv[2], mapping=sys.argv[3], loma_lpf_limit=3).run()
