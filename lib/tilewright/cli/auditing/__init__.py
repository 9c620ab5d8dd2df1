"""Audits of folders that verbs wrote: results are made again and compared."""
