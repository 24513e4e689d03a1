#!/bin/sh
# From plain texts to a table: found in two rounds, trained on, asked. Killed, it goes on.
#     run.sh DATA WORK [TAU]
set -eu
data=$1 work=$2 tau=${3:-0.1}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$work" && cd "$work"

[ -e told.jsonl.gz ] || python "$here/corpus.py" "$data/corpora/gsm8k_train_prose.jsonl.gz" told.jsonl.gz --tests "$data/eval"

toolwise annotate told.jsonl.gz --tools Calculator --settings "$here/round-1.toml" --out round-1
[ -e kept-1 ] || toolwise keep round-1 --tau "$tau" --out kept-1
toolwise train kept-1 --settings "$here/train.toml" --out model-1

toolwise annotate told.jsonl.gz --tools Calculator --settings "$here/round-2.toml" --model model-1 --out round-2
[ -e kept-2 ] || toolwise keep round-2 --tau "$tau" --out kept-2
toolwise train kept-2 --settings "$here/train.toml" --out model-2
toolwise train kept-2 --settings "$here/train.toml" --out plain-2 --plain

for one in round-1 round-2; do toolwise eval filter --data "$data/gsm8k_train.jsonl.gz" --run "$one"; done
toolwise eval asdiv svamp --data "$data/eval" --tools Calculator --examples 500 --out answers \
    -m base=smollm2-135m -m plain=plain-2
toolwise eval asdiv svamp --data "$data/eval" --tools Calculator --examples 500 --out answers \
    -m round-1=model-1 -m round-2=model-2 --top-k 0,1,3,10
toolwise eval perplexity "$data/eval/wikitext2_valid.txt" --limit 30000 -m smollm2-135m -m plain-2 -m model-2
toolwise eval report answers --html report.html
