#!/bin/bash
# What tiny-en's texts look like under the stationary law of its chain, against passages of its corpus and cold chains.
#     bash run.sh FOLDER > stationary.md
# Lagged pairs from eight passages at each temperature and length give unbiased means; below tau 1.5 pairs do not meet.
# Records go to FOLDER, a pipe at a time; a file that is there is not made again. About half an hour on two cores.
# TAUS, COLD, LENGTHS, TEXTS, PAIRS and MAX_STEPS make it smaller.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:?a folder for the records}
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" # the stages of a pipe work at the same time, a core each
mkdir -p "$folder"
topics="arts,food,geography,health,nature,politics,science,sports"
of="pll,repeats,$(echo "$topics" | tr , '\n' | sed 's/^/basin=/' | paste -sd ,)"

# The fields of which means are taken: the pseudo-log-likelihood, repeated tokens, the nearest topic.
describe() {
    jq -c 'if .ids then .repeats = (.ids | length - (unique | length)) else . end' |
        mlm-score --by text --no-within-word --quiet | mlm-embed --encoding base64 --quiet |
        mlm-basins --examples "$folder/topics.jsonl" --quiet
}

# Write standard input to a file that appears when it is whole.
to() {
    cat > "$folder/part-$1"
    mv "$folder/part-$1" "$folder/$1"
}

made() {
    [ -e "$folder/$1" ]
}

made topics.jsonl || mlm-embed --encoding base64 --quiet "$here/topics.jsonl" | to topics.jsonl
for n in ${LENGTHS:-8 16}; do
    lag=$((30 * n))
    starts() {
        head -n "${TEXTS:-8}" "$here/passages.jsonl"
    }
    made "corpus-$n.jsonl" || mlm-sample --length "$n" --steps 0 --seed 1 --quiet "$here/passages.jsonl" |
        describe | to "corpus-$n.jsonl"
    made "cold-$n.jsonl" || starts |
        mlm-sample --tau "${COLD:-0.3,0.5,1}" --length "$n" --sweeps 100 --seed 1 --quiet | describe | to "cold-$n.jsonl"
    for tau in $(echo "${COLD:-0.3,0.5,1}" | tr , ' ') ${TAUS:-1.75 2 3}; do
        case ",${COLD:-0.3,0.5,1}," in
        *",$tau,"*) pairs=1 until=$lag steps=$((60 * n)) ;; # to show that they do not meet
        *) pairs=${PAIRS:-3} until=$((80 * n)) steps=${MAX_STEPS:-40000} ;;
        esac
        made "pairs-$tau-$n.jsonl" || starts |
            mlm-couple --tau "$tau" --length "$n" --lag "$lag" --every "$n" --until "$until" --pairs "$pairs" \
                --max-steps "$steps" --seed 1 --quiet | describe | to "pairs-$tau-$n.jsonl"
        mlm-estimate --of "$of" --tokens 5 --quiet "$folder/pairs-$tau-$n.jsonl"
    done
done | to estimates.jsonl
python3 "$here/stationary/page.py" "$folder"
