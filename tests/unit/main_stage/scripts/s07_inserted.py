# A stage that puts another one into the list, and one that is a partial.
import sys
from functools import partial
from zigzag.classes.stages import *


class WithReduction(Stage):
    def run(self):
        stages = [MinimalEnergyStage, *self.list_of_callables]
        yield from stages[0](stages[1:], **self.kwargs).run()


class AtMost(Stage):
    def __init__(self, list_of_callables, *, most, **kwargs):
        super().__init__(list_of_callables, **kwargs)
        self.most = most

    def run(self):
        passed = 0
        for cme, extra_info in self.list_of_callables[0](self.list_of_callables[1:], **self.kwargs).run():
            if passed < self.most:
                yield cme, extra_info
            passed += 1


answers = MainStage(
    [WorkloadParserStage, AcceleratorParserStage, partial(AtMost, most=3), WorkloadStage, WithReduction,
     SpatialMappingGeneratorStage, MinimalEnergyStage, LomaStage, CostModelStage],
    accelerator=sys.argv[1], workload=sys.argv[2], mapping=sys.argv[3], loma_lpf_limit=3).run()
for cme, _ in answers:
    print(f"{cme.layer.name};{cme.energy_total!r}")
