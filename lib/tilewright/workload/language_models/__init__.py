"""Language models: from the configuration of a model and what it is asked to do to a workload of layers.

`families` reads the fields of a configuration into an `architecture`, `weights` counts its parameters, `reader` reads a
workload file, and `model` makes the layers of a step: of `attention` and `latent_attention` with
`attended`, `feed_forward` and `state_space`, which `builder` collects.
"""
