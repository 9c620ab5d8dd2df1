"""Check of results by a second computation.

The check of a schedule computes the results again from the problem and the logs. The check of lower bounds computes the
bounds again from the problem and the weights of a certificate.
"""
