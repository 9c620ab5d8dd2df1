# Parameters are iterated over, and the extra information is read.
import sys
from zigzag.classes.stages import *

answers = MainStage(
    [GeneralParameterIteratorStage, WorkloadParserStage, AcceleratorParserStage, SumStage, WorkloadStage,
     MinimalEDPStage, SpatialMappingGeneratorStage, MinimalEDPStage, LomaStage, CostModelStage],
    accelerator=sys.argv[1], workload=sys.argv[2], mapping=sys.argv[3],
    general_parameter_iterations={"loma_lpf_limit": (2, 3, 4)}).run()
for cme, extra_info in answers:
    ((name, value),) = extra_info[0]
    print(f"{value};{cme.energy_total * cme.latency_total2!r}")
