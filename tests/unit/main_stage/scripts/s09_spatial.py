# A spatial mapping of one's own for convolutions, by the classes of the package.
import sys
from zigzag.datatypes import LayerDim, OADimension
from zigzag.mapping.spatial_mapping import MappingSingleOADim, SpatialMapping
from zigzag.classes.stages import *


class MyMapping(Stage):
    def __init__(self, list_of_callables, *, layer, **kwargs):
        super().__init__(list_of_callables, **kwargs)
        self.layer = layer

    def run(self):
        if LayerDim("K") in self.layer.layer_dims:
            self.layer.spatial_mapping = SpatialMapping({
                OADimension("D1"): MappingSingleOADim({LayerDim("K"): 4}),
                OADimension("D2"): MappingSingleOADim({LayerDim("OX"): 2})})
        for cme, extra_info in self.list_of_callables[0](self.list_of_callables[1:], layer=self.layer, **self.kwargs).run():
            yield cme, extra_info


answers = MainStage(
    [WorkloadParserStage, AcceleratorParserStage, WorkloadStage, MyMapping, SpatialMappingGeneratorStage,
     MinimalEnergyStage, LomaStage, CostModelStage],
    accelerator=sys.argv[1], workload=sys.argv[2], mapping=sys.argv[3], loma_lpf_limit=3,
    nb_mappings_generated=1).run()
for cme, _ in answers:
    print(f"{cme.layer.name};{dict(cme.user_spatial_mapping.get('D1', {}))};{cme.energy_total!r}")
