#!/usr/bin/env bash
# What `make run` does: rebuild what is damaged or out of date, then the report, then the summary on the terminal.
# usage: workflow/run.sh CONFIG [SNAKEMAKE OPTION ...]
set -uo pipefail
config=$1
shift
report=results/report.html

mkdir -p results
python -m tilewright store verify results --remove-damaged || exit

snakemake --configfile "$config" "$@"
status=$?

# The report is made again when something that it shows is newer.
if [[ $status == 0 ]] && { [[ ! -e $report ]] || [[ -n $(find results \( -name '*.csv' -o -name '*.svg' \) -newer "$report" -print -quit) ]]; }; then
  echo "making $report"
  snakemake --configfile "$config" --report "$report" --quiet all >logs/report.log 2>&1 || { status=1; cat logs/report.log >&2; }
fi

python -m tilewright summarize --config "$config" || [[ $status != 0 ]] || status=1
[[ $status == 0 ]] && echo "report: $report" || echo "some runs failed, see above and logs/; the others are done" >&2
exit $status
