# A cost model of one's own: twice the energy of operations.
import sys
from zigzag.cost_model.cost_model import CostModelEvaluation
from zigzag.stages.stage import Stage
from zigzag.classes.stages import *


class DoubleMacs(Stage):
    def __init__(self, list_of_callables, *, accelerator, layer, spatial_mapping, spatial_mapping_int,
                 temporal_mapping, access_same_data_considered_as_no_access=True, **kwargs):
        super().__init__(list_of_callables, **kwargs)
        self.given = dict(accelerator=accelerator, layer=layer, spatial_mapping=spatial_mapping,
                          spatial_mapping_int=spatial_mapping_int, temporal_mapping=temporal_mapping,
                          access_same_data_considered_as_no_access=access_same_data_considered_as_no_access)

    def run(self):
        cme = CostModelEvaluation(**self.given)
        cme.energy_total = cme.energy_total + cme.mac_energy
        yield cme, None

    def is_leaf(self):
        return True


answers = MainStage(
    [WorkloadParserStage, AcceleratorParserStage, WorkloadStage, MinimalEnergyStage, SpatialMappingGeneratorStage,
     MinimalEnergyStage, LomaStage, DoubleMacs],
    accelerator=sys.argv[1], workload=sys.argv[2], mapping=sys.argv[3], loma_lpf_limit=2).run()
for cme, _ in answers:
    print(f"{cme.layer.name};{cme.energy_total!r};{cme.mac_energy!r}")
