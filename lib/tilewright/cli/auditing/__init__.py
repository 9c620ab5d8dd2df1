"""What `tilewright audit` makes again of the folders that verbs wrote, and how it compares."""
