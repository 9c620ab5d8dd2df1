"""Former names of verbs, which continue to work until the release GONE_WITH.

Only the standard library is imported: `import tilewright` reads this module for the functions with these names.
"""

GONE_WITH = "0.2.0"
"""Version without the former names."""
OLD_VERBS = {"certify": "check-front", "costs": "cost-library", "court": "accuracy", "validation": "compare-chips"}
"""Current name of each former verb. `--help` and completion list only current names."""
