# The workflow is in workflow/Snakefile, where Snakemake and other workflows look for it, too.
include: "workflow/Snakefile"


workflow.default_target = "all"  # an included file does not set it
