#!/bin/sh
# Estimate a stationary mean until its standard error is small enough: batches of coupled pairs, one file and one seed each.
#     OF=count:the SE=0.02 sh until-precise.sh texts.txt pairs/
# A batch that was killed goes on when the script is started again with the same words (--resume). It ends when
# mlm-estimate --target-se needs no more pairs; a pair that did not meet ends it at once, with the reason and status 1.
# The error is estimated from the same pairs that decide about the end, so with few pairs it is a little too small.
set -eu
texts=${1:?a file of texts}
folder=${2:?a folder for the pairs}
lag=${LAG:-60}
mkdir -p "$folder"
seed=0
enough=false
set --
until [ "$enough" = true ]
do
    seed=$((seed + 1))
    mlm-couple --model "${MLM_MODEL:-tiny-en}" --tau "${TAU:-3}" --length "${LENGTH:-8}" --lag "$lag" --on-change \
        --until "${UNTIL:-$((10 * lag))}" --pairs "${PAIRS:-10}" --seed "$seed" -q \
        --resume "$folder/pairs-$seed.jsonl" "$texts"
    set -- "$@" "$folder/pairs-$seed.jsonl"
    mlm-estimate --of "${OF:-words}" --target-se "${SE:-0.05}" "$@" > "$folder/estimate.jsonl"
    if ! jq -e .mean "$folder/estimate.jsonl" > /dev/null
    then
        jq -r .mean_reason "$folder/estimate.jsonl" >&2
        exit 1
    fi
    enough=$(jq '.pairs >= .pairs_needed' "$folder/estimate.jsonl")
done
cat "$folder/estimate.jsonl"
