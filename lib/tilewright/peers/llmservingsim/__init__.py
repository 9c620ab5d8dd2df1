"""LLMServingSim: profiles of operators for its releases, so that it can simulate serving on cores of tilewright.

The releases are those of github.com/casys-kaist/LLMServingSim. Files and keys of a profile are those that the module
for traces of a release reads: `inference_serving/generate_trace.py` at commit 89f312f (0.2.1),
`inference_serving/trace_generator.py` at 9e3f0ec (1.0.0) and `serving/core/trace_generator.py` at 88e3e3f (1.1.0 and
later). All times are for one chip (tensor parallelism 1).
"""
