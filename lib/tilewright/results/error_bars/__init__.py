"""Error bars on predicted latencies, from the errors of predictions for measurements by others
(docs/accuracy.md#error-bars).
"""
