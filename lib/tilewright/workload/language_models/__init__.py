"""Language models: from the configuration of a model and a requested step to a workload of layers.

`families` reads the fields of a configuration into an `architecture`, `weights` counts its parameters, `reader` reads a
workload file, and `model` makes the layers of a step. The layers come from `attention` and `latent_attention` (with
`attended`), `feed_forward` and `state_space`; `builder` collects them.
"""
