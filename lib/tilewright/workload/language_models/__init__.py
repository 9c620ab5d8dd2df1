"""Language models: a workload of layers, made from the configuration of a model and a requested step.

`families` reads the fields of a configuration into an `architecture`. `weights` counts the parameters of a model.
`reader` reads a workload file. `model` makes the layers of a step, with the help of the modules `attention` and
`attended`. `builder` collects the layers.
"""
