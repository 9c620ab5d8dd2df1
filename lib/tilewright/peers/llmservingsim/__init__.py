"""LLMServingSim: profiles of operators as its releases read them, so that it simulates the serving of our cores.

The releases are those of github.com/casys-kaist/LLMServingSim. What a release reads, and by which keys, is as in the
module that makes its traces: `inference_serving/generate_trace.py` at commit 89f312f (0.2.1),
`inference_serving/trace_generator.py` at 9e3f0ec (1.0.0) and `serving/core/trace_generator.py` at 88e3e3f (1.1.0 and
later). All times are of one chip (tensor parallelism 1).
"""
