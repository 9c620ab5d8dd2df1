"""Check of results by a second computation.

The results of a schedule are computed again from the problem and the logs. Lower bounds are computed again from the
problem and the weights of a certificate.
"""
