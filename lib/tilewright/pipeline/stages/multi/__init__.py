"""The stages of the flow of several cores, and what they hand on."""
