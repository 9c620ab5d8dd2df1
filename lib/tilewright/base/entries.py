"""Table of the objects that tilewright itself registers: rules of other tools, kinds of arrays, searches for plans.

This module is small and imports nothing, because `import tilewright` reads it.
"""

ENTRIES = {
    "tilewright.hardware.array_model": {
        "analog in-memory": "tilewright.hardware.in_memory:ANALOG",
        "digital in-memory": "tilewright.hardware.in_memory:DIGITAL",
    },
    "tilewright.mapping.locality": {"zigzag-3.9.1": "tilewright.peers.zigzag.data_locality:reference_reach"},
    "tilewright.workload.onnx.reader": {"zigzag-3.9.1": "tilewright.peers.zigzag.onnx_reading:read_reference"},
    "tilewright.mapping.plan_forms": {"stream-2": "tilewright.peers.stream.mapping_file:FORM"},
    "tilewright.multicore.scheduling.options": {"stream-2023": "tilewright.peers.stream.whole_tiles:MODEL"},
    "tilewright.pipeline.stages.multi.plan_search": {"search": "tilewright.plans.of_designs:DesignPlans"},
}
"""Entries of registries: module of the registry -> {name of the object: `module:attribute` of the object}."""
