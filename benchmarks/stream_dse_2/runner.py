"""Whole run of stream-dse 2.1.1 on one of its example systems. Runs only in the environment of `setup_environment.py`.

    python runner.py SYSTEM NETWORK FOLDER [--artifacts]

The run follows the Quick Start of stream-dse: it calls `stream.api.evaluate_mapping` with default options and no
mapping file. stream-dse proposes a mapping for each of its groups of layers, and solves the allocation of each group.
With `--artifacts`, stream-dse also writes its reports and figures, as it does by default. SYSTEM is the name of a file
in `stream/inputs/examples/hardware`. NETWORK has one of three forms:

- `two_conv` or `swiglu_TOKENS_WIDTH_HIDDEN`, a network that the builders of stream-dse make. The tests of stream-dse
  have `two_conv` and `swiglu_1_16_32`.
- The name of a file in `zigzag/inputs/workload` of zigzag-dse, such as `resnet18`.
- The path of an ONNX file.

Writes `network.onnx` and `mapping.yaml` to FOLDER, and prints a JSON object. `mapping.yaml` has the layers and the
groups of all mapping files that stream-dse wrote, one for each group.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import sys
from contextlib import redirect_stdout
from pathlib import Path

import stream
import yaml
import zigzag
from groups import joined
from stream.api import SolveOptions, evaluate_mapping

INPUTS = Path(stream.__file__).parent / "inputs"
HARDWARE = INPUTS / "examples" / "hardware"
NETWORKS = Path(zigzag.__file__).parent / "inputs" / "workload"


def network_file(name: str, folder: Path) -> Path:
    """Path of the network in `folder`. The builders of stream-dse write into its own package, so the file is moved."""
    place = folder / "network.onnx"
    if name == "two_conv":
        from stream.inputs.testing.workload.make_2_conv import TwoConvWorkloadConfig, make_2_conv_workload

        shutil.move(make_2_conv_workload(TwoConvWorkloadConfig(1, 32, 32, 8, 16, 32, 3, "bf16", "bf16")), place)
    elif name.startswith("swiglu_"):
        from stream.inputs.testing.workload.make_swiglu import make_small_swiglu_workload

        sizes = [int(size) for size in name.split("_")[1:]]
        shutil.move(make_small_swiglu_workload(*sizes, output_dir=str(folder)), place)
    else:
        given = NETWORKS / f"{name}.onnx"
        shutil.copyfile(given if given.exists() else name, place)
    return place


def main() -> None:
    """Run stream-dse once and print its result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system")
    parser.add_argument("network")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--artifacts", action="store_true")
    arguments = parser.parse_args()
    with redirect_stdout(sys.stderr):
        network = network_file(arguments.network, arguments.folder)
        hardware = HARDWARE / f"{arguments.system}.yaml"
        options = SolveOptions(artifacts=arguments.artifacts)
        found = evaluate_mapping(str(hardware), str(network), str(arguments.folder), options=options)
    mapping = arguments.folder / "mapping.yaml"
    mapping.write_text(yaml.safe_dump(joined(arguments.folder, len(found.group_cycles)), sort_keys=False))
    used = resource.getrusage(resource.RUSAGE_SELF)
    result = {
        "cycles": found.cycles,
        "groups": len(found.group_cycles),
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "hardware": str(hardware),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
