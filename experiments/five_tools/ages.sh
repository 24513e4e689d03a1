#!/bin/sh
# A chain from end to end on texts of our own: found in two rounds, trained on, and written while decoding.
#     ages.sh RUNS
set -eu
runs=$1
here=$(dirname "$0")
python "$here/ages.py" "$runs"
printf '[tools.Calculator]\nproposers = ["enumerate"]\n' > "$runs/calculator.toml"
toolwise annotate "$runs/ages.jsonl" --tools Calendar --out "$runs/ages-1"
toolwise annotate "$runs/ages-1" --tools Calculator --settings "$runs/calculator.toml" --out "$runs/ages-2"
toolwise report "$runs/ages-2"
toolwise train "$runs/ages-2" --out "$runs/tuned" \
    --set epochs=4 --set batch=4 --set learning_rate=1e-4 --set length=128
python "$here/ages_ask.py" "$runs" "$runs/tuned"
