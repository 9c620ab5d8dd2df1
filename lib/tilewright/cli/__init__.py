"""The tilewright command, which imports the modules of a verb only when the verb runs.

`main` runs the verb, and turns errors into messages and exit codes. `options` has the options that several verbs share.
Each verb has a separate module. `config` reads the configuration of the pipeline for the Snakefile.
"""
