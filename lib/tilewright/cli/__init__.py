"""The tilewright command: thin, importing what a verb needs only when it runs."""
