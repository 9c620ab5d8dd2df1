# Results are named <results>/<stage>/<name>/<artifact>; names are those of files and runs in the configuration, and
# <results> is results/ for config/config.yaml, a folder of its own for every other configuration.
from snakemake.utils import min_version

min_version("9.27")


if not workflow.configfiles:

    configfile: "config/config.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/parse.smk"
include: "workflow/rules/single.smk"
include: "workflow/rules/multi_common.smk"
include: "workflow/rules/multi.smk"
include: "workflow/rules/summary.smk"
include: "workflow/rules/pareto.smk"
include: "workflow/rules/explore.smk"


rule all:
    """Every run of the configuration: mapped, costed, checked, drawn and summarised."""
    default_target: True
    input:
        ACROSS_RUNS,
        ARTIFACTS,
        SINGLE_TARGETS,
        MULTI_TARGETS,
        SPACE_TARGETS,
    message:
        "everything is made"
