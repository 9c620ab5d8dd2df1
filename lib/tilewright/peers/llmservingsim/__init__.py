"""Operator profiles for LLMServingSim, so that this simulator can simulate serving on cores that tilewright models.

The releases are those of github.com/casys-kaist/LLMServingSim. Each release has a module for traces, which defines the
files and keys of a profile: `inference_serving/generate_trace.py` at commit 89f312f (0.2.1),
`inference_serving/trace_generator.py` at 9e3f0ec (1.0.0) and `serving/core/trace_generator.py` at 88e3e3f (1.1.0 and
later). All times are for one chip (tensor parallelism 1).
"""
