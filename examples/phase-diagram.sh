#!/bin/sh
# The phase diagram of meeting times: 16 pairs of passages at eight temperatures and three lengths, each pair until it
# meets or for 12 n ln n steps; then, for each length, the temperatures at which the median meeting time passes 3, 5 and
# 10 n ln n. Writes phase-diagram/MODEL-pairs.jsonl, with which an interrupted run goes on, and
# phase-diagram/MODEL-summary.jsonl, and shows the tables. Under 20 minutes on two cores; needs jq.
#
#     phase-diagram.sh [MODEL]
set -eu
cd "$(dirname "$0")"
model=${1:-tiny-en}
name=phase-diagram/$(basename "$model")
mkdir -p phase-diagram
jq -c '{id, text}' passages.jsonl | head -n 40 |
    mlm-couple --model "$model" --dtype bfloat16 --tau 0.5,1,1.25,1.5,1.75,2,2.5,3 --length 8,16,32 --pairs 16 \
        --horizon 12 --seed 1 --resume "$name-pairs.jsonl"
mlm-couple --summarize -o "$name-summary.jsonl" "$name-pairs.jsonl"
mlm-couple --summarize --table "$name-pairs.jsonl"
