#!/bin/bash
# The phase diagram of meeting times: 16 pairs of passages at eight temperatures and three lengths, each pair until it
# meets or for 12 n ln n steps; then, for each length, the temperatures at which the median meeting time passes 3, 5 and
# 10 n ln n. Writes phase-diagram/MODEL-pairs.jsonl, with which an interrupted run goes on, and
# phase-diagram/MODEL-summary.jsonl, and shows the tables. Under 20 minutes on two cores; needs jq.
#
# A MODEL-pairs.jsonl of an earlier version of the draw is refused: move it away first.
#     phase-diagram.sh [MODEL]
[ -n "${BASH_VERSION:-}" ] || exec bash "$0" "$@" # for pipefail: every stage of a pipe may fail the script
set -euo pipefail
model=${1:-tiny-en}
if [ -d "$model" ]; then model=$(realpath -- "$model"); fi
cd -- "$(dirname "$0")"
name=phase-diagram/$(basename "$model")
mkdir -p phase-diagram
head -n 40 passages.jsonl | jq -c '{id, text}' |
    mlm-couple --model "$model" --dtype bfloat16 --tau 0.5,1,1.25,1.5,1.75,2,2.5,3 --length 8,16,32 --pairs 16 \
        --horizon 12 --seed 1 --resume "$name-pairs.jsonl"
mlm-couple --summary -o "$name-summary.jsonl" "$name-pairs.jsonl"
mlm-couple --summary --table "$name-pairs.jsonl"
