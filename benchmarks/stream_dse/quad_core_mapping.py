"""Which cores run which operator: convolutions and matrix products any of the four, pooling and sums their own.

The name `mapping` is the one under which stream-dse looks for it.
"""

from quad_core import COMPUTE, POOLING, SIMD

mapping = {name: {"core_allocation": list(COMPUTE)} for name in ("default", "Conv", "Gemm")}
mapping |= {name: {"core_allocation": POOLING} for name in ("MaxPool", "AveragePool", "GlobalAveragePool")}
mapping |= {"Add": {"core_allocation": SIMD}}
