#!/bin/bash
# How long does one sentence take to mix? tau against three times of one chain, in steps: tiny-en on four sites, its
# vocabulary restricted to the sentence's own four words (256 states).
#   exact    t_mix(1/4) from the worst start, solved;
#   bound    the paper's ceil(n/(1-alpha) ln(n/eps)) for that chain, alpha exact: nothing where alpha >= 1;
#   meeting  the median meeting time of 100 coupled pairs, one chain at the sentence and one at random tokens, with its
#            95 % interval; "-" where it was not reached.
[ -n "${BASH_VERSION:-}" ] || exec bash "$0" "$@" # for pipefail: every stage of a pipe may fail the script
set -euo pipefail
words=${1:-the,cat,sat,down}
taus=0.5,1,2,4,8
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
sentence=$(echo "$words" | tr , ' ')
echo "$sentence" | mlm-exact --vocab "$words" --tau "$taus" > "$folder/exact"
echo "$sentence" | mlm-couple --allow "$words" --start random --pairs 100 --max-steps 2000 --tau "$taus" --seed 1 |
    mlm-couple --summarize > "$folder/meeting"
printf 'tau\texact\tbound\talpha\tmeeting\n'
jq -rs '(map(select(.of == "pair" and .over == "group")) | INDEX(.tau)) as $meeting
    | .[] | select(.type == "exact") | $meeting[.tau | tostring] as $m
    | [.tau, .tmix, .bound // "-", (.alpha * 1000 | round / 1000), "\($m.median // "-") [\($m.median_low // "-"), \($m.median_high // "-")]"]
    | @tsv' "$folder/exact" "$folder/meeting"
