"""The tilewright command: thin, importing what a verb needs only when it runs.

`main` dispatches and turns errors into messages and exit codes, `options` holds what verbs share, and each verb has
a module. `config` reads the pipeline's configuration for the Snakefile.
"""
