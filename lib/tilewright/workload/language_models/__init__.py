"""Language models: from the configuration of a model and a requested step to a workload of layers.

`families` reads the fields of a configuration into an `architecture`. `weights` counts the parameters of a model.
`reader` reads a workload file. `model` makes the layers of a step, with `attention`, `latent_attention` and
`attended`, and with the functions `feed_forward` and `state_space`. `builder` collects the layers.
"""
