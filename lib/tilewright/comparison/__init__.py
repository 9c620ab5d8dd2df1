"""What our numbers are compared with: those of the reference tool, and chips. Uses the model; nothing of it uses this.

The verbs `conformance` and `validation` are here too.
"""
