#!/bin/sh
# Do copies of a token beget copies? The paper's chains end in runs of "!"; tiny-en's own is the hyphen. For k copies among
# 16 tokens, the expected change of k in one step, in copies a thousand steps:
#   out       mean over 32 states on ways out of 16 copies, with its 95 % interval      (--draw copies, an estimate)
#   in        mean over 32 texts in which copies were put at random sites               (--draw texts, an estimate)
#   chains    what eight chains from 16 copies did on average where they had k          (a measurement, with its steps)
# Proved is only the line k = 16, where there is one state: its escape and its mean holding time are exact.
set -eu
examples=$(cd "$(dirname "$0")" && pwd)
token=${1:--} tau=${2:-0.5} n=16 steps=${3:-4000}
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
for draw in copies texts; do
    head -n 20 "$examples/passages.jsonl" |
        mlm-traps --certify "$token" --draw $draw --contexts 32 --length $n --tau "$tau" --seed 1 > "$folder/$draw"
done
id=$(jq 'select(.over == "token").token' "$folder/copies")
# A record of ids, since a tokenizer may cut sixteen copies otherwise than a word each.
jq -cn --argjson id "$id" --argjson n $n '{id: "copies", ids: [range($n) | $id]}' |
    mlm-sample --tau "$tau" --chains 8 --steps "$steps" --on-change --seed 1 > "$folder/chains"
mlm-traps --radius 0 --min-steps 1 --summary "$folder/chains" > "$folder/traps"
# Between two records the state stays: k for as many steps as lie between them, and a change at the last of these.
jq -c --argjson id "$id" 'select(.type == "state") | {chain, step, k: (.ids | map(select(. == $id)) | length)}' \
    "$folder/chains" > "$folder/counts"
printf 'k\tout\tin\tchains\tsteps\n'
jq -rn --slurpfile out "$folder/copies" --slurpfile into "$folder/texts" --slurpfile counts "$folder/counts" '
    def round1: . * 10000 | round / 10;
    def levels: map(select(.over == "token"))[0].levels | INDEX(.k);
    def told: if . then "\(.drift | round1)" + (if .low then " [\(.low | round1), \(.high | round1)]" else "" end) else "-" end;
    ($out | levels) as $a | ($into | levels) as $b
    | (reduce ($counts | group_by(.chain)[] | range(1; length) as $t | {from: .[$t - 1], to: .[$t]}) as $move ({};
        (.[$move.from.k | tostring] //= {steps: 0, moved: 0})
        | .[$move.from.k | tostring].steps += $move.to.step - $move.from.step
        | .[$move.from.k | tostring].moved += $move.to.k - $move.from.k)) as $seen
    | range(17) | tostring as $k | $seen[$k] as $here
    | [$k, ($a[$k] | told), ($b[$k] | told), (if $here then ($here.moved / $here.steps | round1) else "-" end), $here.steps // 0]
    | @tsv'
jq -r 'select(.over == "token") | "\(.draw)\tgrows at k = \(.growing | tojson), in every state drawn at \(.growing_all | tojson); "
    + "threshold \(.basin.threshold // "none"); estimated steps to fall below it \(.escape_steps // 0 | round)"' \
    "$folder/copies" "$folder/texts"
jq -r 'select(.over == "token") | "exact\tall copies: escape \(.full.escape), mean stay \(.full.expected) steps"' "$folder/copies"
jq -r 'select(.over == "group") | "seen\tstays at the states of the chains, observed / exact: \(.ratio) [\(.ratio_low), \(.ratio_high)]"' \
    "$folder/traps"
jq -s -r 'group_by(.chain) | map({last: .[-1].k, least: (map(.k) | min)})
    | "seen\tcopies at the end of the chains \(map(.last) | tojson), fewest on the way \(map(.least) | tojson)"' "$folder/counts"
