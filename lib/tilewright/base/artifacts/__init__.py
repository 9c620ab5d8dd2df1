"""Reading, writing and verifying every file artifact; digests and provenance.

`files` finds and writes files. `digests` writes JSON in one fixed text form, and computes digests of content.
`step_code` computes digests of code. `envelope` wraps single objects and tables of rows. `codec` turns frozen
dataclasses into JSON and back.
"""
