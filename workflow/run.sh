#!/usr/bin/env bash
# What `make run` does: rebuild what is damaged or out of date, then the report, then the summary on the terminal.
# usage: workflow/run.sh CONFIG [SNAKEMAKE OPTION ...]
set -uo pipefail
config=$1
shift
report=results/report.html
started=logs/.started

# A wrong configuration is told in its own words, once, before anything else happens.
python -m tilewright validate --kind config "$config" >/dev/null || exit

# Questions to snakemake compute nothing, so there is nothing to report.
for option in "$@"; do
  case $option in
    -n | -np | -pn | --dry-run | --dryrun | --unlock | --lint | --dag | --rulegraph | --filegraph)
      exec snakemake --configfile "$config" "$@"
      ;;
  esac
done

mkdir -p results logs

# One run at a time in this folder. Whatever the run starts keeps descriptor 9 open: the lock is free when all of it has
# ended, however it ended. Snakemake's own lock outlives a run that was killed; where ours is free, it is such a one.
if command -v flock >/dev/null; then
  exec 9>>logs/.running
  if ! flock --nonblock 9; then
    echo "error: another run is at work in this folder" >&2
    exit 2
  fi
  if [[ -s logs/.running ]]; then
    echo "the run before this one did not end; what it finished is kept"
    snakemake --configfile "$config" --unlock --quiet all >logs/unlock.log 2>&1 || { cat logs/unlock.log >&2; exit 1; }
    find results -name '.*.tmp' -type f -delete
  fi
  echo "$$" >logs/.running
  trap ': >logs/.running' EXIT
fi

python -m tilewright store verify results --remove-damaged || exit

touch "$started"
snakemake --configfile "$config" "$@"
status=$?

# Each job writes to a log of its own; the message that a person needs is there. Two jobs may say the same.
failures=""
if [[ $status != 0 ]]; then
  failures=$(find logs -name '*.log' -newer "$started" -print0 | sort -z | xargs -0 -r grep -HE '^(internal )?error:' \
    | awk '{ said = $0; sub(/^[^:]*:/, "", said) } !seen[said]++')
  [[ -z $failures ]] || printf '\nWhy jobs failed:\n%s\n\n' "$failures" >&2
fi

# The report is made again when something that it shows is newer.
if [[ $status == 0 ]] && { [[ ! -e $report ]] || [[ -n $(find results \( -name '*.csv' -o -name '*.svg' \) -newer "$report" -print -quit) ]]; }; then
  echo "making $report"
  snakemake --configfile "$config" --report "$report" --quiet all >logs/report.log 2>&1 || { status=1; cat logs/report.log >&2; }
fi

python -m tilewright summarize --config "$config" || [[ $status != 0 ]] || status=1

# Results that a failed run had before are kept and are in the table; whoever reads it must know which those are.
if [[ $status != 0 ]]; then
  earlier=$(snakemake --configfile "$config" --summary 2>/dev/null \
    | awk -F '\t' '$1 ~ /^results\/(single|multi)\/[^\/]*\/summary.json$/ && $2 != "-" && /update pending/ \
      { split($1, part, "/"); if (part[3] !~ /\.layer_by_layer$/) print "  " part[3] }')
  [[ -z $earlier ]] || printf 'Of an earlier run, before what they are made of was changed:\n%s\n' "$earlier"
fi
if [[ $status == 0 ]]; then
  echo "report: $report"
elif [[ -n $failures ]]; then
  echo "some runs failed, see above and logs/; the others are done" >&2
else
  echo "not everything was computed, see above" >&2
fi
exit $status
