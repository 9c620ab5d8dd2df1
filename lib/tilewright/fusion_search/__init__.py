"""How a network is fused on several cores: stacks, tiles, parts between cores, cores and schedules, found together."""
