"""What is wrong with a network on an accelerator of several cores, found before anything is computed."""
