# The script of ZigZag's page on stages, as it is printed there: arguments in front of it.
import argparse

from zigzag.classes.stages import *

parser = argparse.ArgumentParser()
for name in ("accelerator", "model", "mapping"):
    parser.add_argument(f"--{name}", required=True)
args = parser.parse_args()

mainstage = MainStage([  # Initializes the MainStage as entry point
    ONNXModelParserStage,  # Parses the ONNX Model into the workload
    AcceleratorParserStage,  # Parses the accelerator
    SimpleSaveStage,  # Saves all received CMEs information to a json
    WorkloadStage,  # Iterates through the different layers in the workload
    SpatialMappingConversionStage,  # Generates multiple spatial mappings (SM)
    MinimalLatencyStage,  # Reduces all CMEs, returning minimal latency one
    LomaStage,  # Generates multiple temporal mappings (TM)
    CostModelStage  # Evaluates generated SM and TM through cost model
],
    accelerator_path=args.accelerator,  # required by AcceleratorParserStage
    onnx_model_path=args.model,  # required by ONNXModelParserStage
    mapping_path=args.mapping,  # required by ONNXModelParserStage
    dump_filename_pattern="outputs/{datetime}.json",  # output file save pattern
    loma_lpf_limit=6  # required by LomaStage
)

# Run the mainstage
answers = mainstage.run()
