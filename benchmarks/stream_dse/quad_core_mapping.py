"""Mapping for stream-dse: the cores that can run each operator.

Convolutions and matrix products can run on each of the four compute cores. Pooling and sums have their own cores.
stream-dse looks for the name `mapping`.
"""

from quad_core import COMPUTE, POOLING, SIMD

mapping = {name: {"core_allocation": list(COMPUTE)} for name in ("default", "Conv", "Gemm")}
mapping |= {name: {"core_allocation": POOLING} for name in ("MaxPool", "AveragePool", "GlobalAveragePool")}
mapping |= {"Add": {"core_allocation": SIMD}}
