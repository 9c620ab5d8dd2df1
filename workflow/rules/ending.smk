# What a run says when it has ended. A dry run, and one that finds everything up to date, say what Snakemake says.
import time

from tilewright.cli.workflow_messages import FILE_VARIABLE, damage_lines, tell_ending

BEGAN = time.monotonic()


def say_how_it_ended(write):
    """Where the results are, how long it took, what was reused; or what failed, with what the logs say."""
    tell_ending(
        workflow,
        time.monotonic() - BEGAN,
        RESULTS,
        write,
        os.getenv(FILE_VARIABLE),
        PLAN.unused,
    )


onstart:
    for line in damage_lines(LEDGER.damaged):
        logger.warning(line)


onsuccess:
    say_how_it_ended(logger.info)


onerror:
    say_how_it_ended(logger.error)
