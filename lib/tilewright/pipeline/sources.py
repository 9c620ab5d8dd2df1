"""Sources of hardware, workload and mapping: paths, dicts, lists, ONNX models, artifacts, or parsed objects."""

from tilewright.base.artifacts.files import FilePath, existing_file
from tilewright.hardware.core import single_core
from tilewright.hardware.source import AcceleratorSource, parse_accelerator
from tilewright.mapping.source import MappingSource, parse_mapping
from tilewright.workload.source import WorkloadSource, parse_workload

__all__ = [
    "AcceleratorSource",
    "FilePath",
    "MappingSource",
    "WorkloadSource",
    "existing_file",
    "parse_accelerator",
    "parse_mapping",
    "parse_workload",
    "single_core",
]
