"""Error bars on predicted latencies, from the errors of rows that others measured (docs/accuracy.md#error-bars)."""
