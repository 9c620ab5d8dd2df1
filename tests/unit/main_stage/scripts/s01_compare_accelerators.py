# A course: one network on several accelerators, energies in a table.
import sys
from zigzag.classes.stages import *

accelerators, workload, mapping = sys.argv[1].split(","), sys.argv[2], sys.argv[3]
results = {}
for accelerator in accelerators:
    mainstage = MainStage(
        [WorkloadParserStage, AcceleratorParserStage, WorkloadStage, MinimalEnergyStage,
         SpatialMappingGeneratorStage, MinimalEnergyStage, LomaStage, CostModelStage],
        accelerator=accelerator, workload=workload, mapping=mapping, loma_lpf_limit=3)
    answers = mainstage.run()
    results[accelerator] = (sum(a[0].energy_total for a in answers), sum(a[0].latency_total2 for a in answers))
for accelerator, (energy, latency) in results.items():
    print(f"{accelerator};{energy!r};{latency!r}")
