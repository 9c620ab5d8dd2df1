"""Reading, writing and verifying every file artifact; digests and provenance.

`canonical` is the one text form of JSON. `files` finds and writes files. `digests` computes digests of content and
code. `envelope` wraps single objects and tables of rows. `codec` turns frozen dataclasses into JSON and back.
"""
