"""Search of fusion on several cores: stacks, tiles, parts between cores, cores and schedules, found together."""
