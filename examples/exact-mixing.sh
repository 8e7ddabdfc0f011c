#!/bin/bash
# How long does one sentence take to mix? tau against times of one chain, in steps: tiny-en on four sites, its vocabulary
# restricted to the sentence's own four words (256 states).
#   exact    t_mix(1/4) from the worst start, solved;
#   here     the same from the sentence;
#   bound    the paper's ceil(n/(1-alpha) ln(n/eps)) for that chain, alpha exact: nothing where alpha >= 1;
#   lagged   the upper estimate of `here` from 100 pairs with lag 100, and the upper end of its 95 % interval;
#   median, quartile   of the meeting times of 100 coupled pairs, one chain at the sentence and one at random tokens: the
#            median bounds nothing from above, the upper quartile (of all pairs of such starts) when their laws are
#            within 1/4 of each other; "-" where it was not reached.
[ -n "${BASH_VERSION:-}" ] || exec bash "$0" "$@" # for pipefail: every stage of a pipe may fail the script
set -euo pipefail
words=${1:-the,cat,sat,down}
taus=0.5,1,2,4,8
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
sentence=$(echo "$words" | tr , ' ')
echo "$sentence" | mlm-exact --allow "$words" --tau "$taus" > "$folder/exact"
couple() { echo "$sentence" | mlm-couple --allow "$words" --pairs 100 --max-steps 5000 --tau "$taus" --seed 1 "$@"; }
{ couple --start random; couple --lag 100; } | mlm-couple --summary --eps 0.25 > "$folder/meeting"
printf 'tau\texact\there\tbound\talpha\tlagged\tmedian\tquartile\n'
jq -rs '(map(select(.of == "pair" and .over == "group"))) as $groups
    | ($groups | map(select(.lag == 0)) | INDEX(.tau)) as $meeting | ($groups | map(select(.lag > 0)) | INDEX(.tau)) as $lagged
    | .[] | select(.type == "exact") | (.tau | tostring) as $tau | $meeting[$tau] as $m | ($lagged[$tau].tmix // [{}])[0] as $l
    | [.tau, .tmix, .tmix_text, .bound // "-", (.alpha * 1000 | round / 1000), "\($l.t // "-") (\($l.t_high // "-"))",
       $m.median // "-", $m.upper_quartile // "-"]
    | @tsv' "$folder/exact" "$folder/meeting"
