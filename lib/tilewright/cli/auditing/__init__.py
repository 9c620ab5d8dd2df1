"""Audits of folders that verbs wrote: results are recomputed and compared."""
