#!/bin/sh
# How long does one sentence take to mix? tau against three times, in steps:
#   exact    t_mix(1/4) of tiny-en restricted to the three likeliest tokens of each site (729 states), solved;
#   bound    the paper's ceil(n/(1-alpha) ln(n/eps)) for that same chain, alpha exact: nothing where alpha >= 1;
#   meeting  the median meeting time of 10 coupled pairs over the whole vocabulary, one chain of each at the sentence,
#            the other at random tokens; "-" where over half of them did not meet within 300 steps.
# The first two are about one chain, and the bound is never below. The third is about the unrestricted chain, whose
# states are far more: where the times part, it is the tail of the vocabulary that takes the time.
set -eu
sentence="the cat sat on the mat"
taus=1,2,4,8,16
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
echo "$sentence" | mlm-exact --top 3 --tau $taus > "$folder/exact"
echo "$sentence" | mlm-couple --start random --pairs 10 --max-steps 300 --tau $taus --seed 1 |
    mlm-couple --summarize > "$folder/meeting"
printf 'tau\texact\tbound\talpha\tmeeting\n'
jq -rs '(map(select(.of == "pair" and .over == "group")) | INDEX(.tau)) as $meeting
    | .[] | select(.type == "exact")
    | [.tau, .tmix, .bound // "-", (.alpha * 1000 | round / 1000), $meeting[.tau | tostring].median // "-"]
    | @tsv' "$folder/exact" "$folder/meeting"
