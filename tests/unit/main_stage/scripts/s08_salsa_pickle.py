# SALSA, and the pickle is read back.
import pickle
import sys
from zigzag.classes.stages import *

answers = MainStage(
    [WorkloadParserStage, AcceleratorParserStage, SimpleSaveStage, PickleSaveStage, SumStage, WorkloadStage,
     MinimalLatencyStage, SpatialMappingGeneratorStage, SalsaStage, CostModelStage],
    accelerator=sys.argv[1], workload=sys.argv[2], mapping=sys.argv[3], salsa_iteration_number=100,
    salsa_start_temperature=0.05, salsa_opt_criterion="latency", salsa_number_of_core=2,
    dump_folder="outputs", pickle_filename="outputs/cmes.pickle").run()
with open("outputs/cmes.pickle", "rb") as handle:
    cmes = pickle.load(handle)
print(len(cmes), answers[0][0].latency_total2)
