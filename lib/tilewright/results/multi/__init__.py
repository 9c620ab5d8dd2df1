"""Tables, figures, pages and checks of a run on several cores, made from its artifacts."""
