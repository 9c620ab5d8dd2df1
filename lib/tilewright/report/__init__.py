"""Tables, figures, loop nests, physical checks and mapping exports, all made from the records of a run.

A record is the result of one distinct layer problem, a plain dict as it stands on a line of `layers.jsonl`
(docs/artifacts.md). Nothing here searches or evaluates: what is reported is what the artifacts say.
"""
