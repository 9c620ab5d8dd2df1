"""Search for fusion plans on several cores: stacks, tiles, splits of layers between cores, allocation, and schedule
options.
"""
