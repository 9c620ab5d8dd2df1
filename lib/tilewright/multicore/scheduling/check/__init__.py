"""Second computation of results, as a check: the results of a schedule from the problem and the logs, and lower bounds
from the problem and the weights of a certificate.
"""
