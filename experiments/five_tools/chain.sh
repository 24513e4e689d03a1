#!/bin/sh
# A date feeds a calculation: five addresses that count years, the calendar first, then the calculator over its C*.
#     chain.sh DATA RUNS [MODEL]      MODEL: one that was tuned on calls, such as demo-run/model; it scores inline
set -eu
data=$1 runs=$2
zcat "$data/corpora/sotu.jsonl.gz" | grep -E '"date": "(1948|1975|1982|1989|2013)' > "$runs/counted-years.jsonl"
printf '[tools.Calendar]\nk = 20\ntau_f = 0.05\n' > "$runs/calendar.toml"
printf '[tools.Calculator]\nproposers = ["enumerate"]\n' > "$runs/calculator.toml"
printf 'scoring = "inline"\n' | cat - "$runs/calculator.toml" > "$runs/inline.toml"
toolwise annotate "$runs/counted-years.jsonl" --tools Calendar --settings "$runs/calendar.toml" --out "$runs/chain-1"
toolwise annotate "$runs/chain-1" --tools Calculator --settings "$runs/calculator.toml" --out "$runs/chain-2"
toolwise report "$runs/chain-2"
if [ $# -gt 2 ]; then
    toolwise annotate "$runs/chain-1" --tools Calculator --settings "$runs/inline.toml" --model "$3" --out "$runs/chain-2-inline"
    toolwise report "$runs/chain-2-inline"
fi
