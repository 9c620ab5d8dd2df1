"""Error bars on predicted latencies, made from the errors of earlier predictions for measurements by others
(docs/accuracy/error-bars.md).
"""
