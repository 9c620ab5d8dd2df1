"""Audits of folders that verbs wrote: results are recomputed and compared with the stored results."""
