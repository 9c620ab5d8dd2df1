# A report of everything that a paper has in its figures.
import sys
from zigzag.stages.main import MainStage
from zigzag.stages import *
from zigzag.classes.stages import *

answers = MainStage(
    [WorkloadParserStage, AcceleratorParserStage, CompleteSaveStage, WorkloadStage, MinimalLatencyStage,
     SpatialMappingGeneratorStage, MinimalLatencyStage, LomaStage, CostModelStage],
    accelerator=sys.argv[1], workload=sys.argv[2], mapping=sys.argv[3], loma_lpf_limit=3,
    dump_folder="outputs").run()
for cme, (layer, _) in answers:
    assert layer == cme.layer or layer.name == cme.layer.name
    for operand in cme.layer.layer_operands:
        memory_operand = cme.layer.memory_operand_links[operand]
        for number, level in enumerate(cme.accelerator.mem_hierarchy_dict[memory_operand]):
            energy = cme.mem_energy_breakdown[operand][number]
            words = cme.memory_word_access[operand][number]
            loops = cme.temporal_mapping.mapping_dic_stationary[operand][number]
            print(layer.name, operand, level.name, level.memory_instance.size, level.unroll_count, energy,
                  words.rd_out_to_low, [str(loop) for loop in loops], cme.mem_utili_shared[operand][number])
    print(layer.name, cme.mac_spatial_utilization, cme.mac_utilization0, cme.mac_utilization2, cme.ideal_cycle,
          cme.layer.total_mac_count, cme.accelerator.operational_array.total_unit_count,
          cme.layer.layer_dim_sizes.total_size, cme.layer.operand_size_bit["W"] if "W" in cme.layer.layer_operands else 0)
