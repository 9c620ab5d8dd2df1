"""The tilewright command, which imports the modules of a verb only when the verb runs.

`main` dispatches and turns errors into messages and exit codes, `options` has what verbs share, and each verb has a
module. `config` reads the pipeline's configuration for the Snakefile.
"""
