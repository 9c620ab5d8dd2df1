# Layers keep their data in low memories, all other mappings are kept; results go into a JSON file of the script.
import json
import sys
from zigzag.stages.exploit_data_locality_stages import ExploitInterLayerDataLocalityStage
from zigzag.stages.exploit_data_locality_stages import SearchInterLayerDataLocalityStage
from zigzag.classes.stages import *

answers = MainStage(
    [WorkloadParserStage, AcceleratorParserStage, SearchInterLayerDataLocalityStage, WorkloadStage,
     ExploitInterLayerDataLocalityStage, MinimalEnergyStage, SpatialMappingGeneratorStage, MinimalEnergyStage,
     TemporalMappingGeneratorStage, CostModelStage],
    accelerator=sys.argv[1], workload=sys.argv[2], mapping=sys.argv[3], loma_lpf_limit=3,
    workload_data_always_from_top_mem=True, reduce_minimal_keep_others=True).run()
with open("answers.json", "w") as handle:
    json.dump({layer.name: {"energy": cme.energy_total, "memories": [level.name for level in cme.accelerator.memory_hierarchy.mem_level_list],
                            "others": len(others)} for cme, (layer, others) in answers}, handle)
