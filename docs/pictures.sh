#!/bin/bash
# Makes the pictures of docs/pictures.md in docs/pictures/, one of each kind, in a minute on two cores. STYLE=paper,
# WIDTH=INCHES and DPI=DOTS draw them otherwise; OUT is the folder that they go to. The page shows the same commands, with
# mlm-plot in the place of draw.
[ -n "${BASH_VERSION:-}" ] || exec bash "$0" "$@" # for pipefail: every stage of a pipe may fail the script
set -euo pipefail
root=$(cd -- "$(dirname "$0")/.." && pwd)
out=$(realpath -- "${OUT:-$root/docs/pictures}")
style=(--style "${STYLE:-default}" --width "${WIDTH:-3.375}" --dpi "${DPI:-110}")
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
cd -- "$work"
ln -s "$root/examples" examples
draw() { mlm-plot --quiet --kind "$1" "${style[@]}" -o "$out/$1.png" "${@:2}"; }

cat > table.json << 'END'
{"tokens": ["a", "b", "c"],
 "tables": [[[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]], [[0.6, 0.3, 0.1], [0.1, 0.8, 0.1], [0.3, 0.1, 0.6]]]}
END
cat > joint.json << 'END'
{"tokens": ["a", "b"], "tables": [[[0.667, 0.333], [0.25, 0.75]], [[0.8, 0.2], [0.4, 0.6]]]}
END

printf '%s\n' 'the cat sat on the mat' 'she sold her car last week' 'rain fell on the old town' 'the king lost the long war' |
    mlm-sample --tau 0.5,2 --chains 2 --sweeps 20 --seed 1 | mlm-embed > embedded.jsonl
grep '"id": "light"' examples/passages.jsonl | mlm-sample --tau 0.3 --length 12 --steps 400 --on-change --seed 1 > chain.jsonl
mlm-traps chain.jsonl | draw spacetime chain.jsonl -

mlm-drift embedded.jsonl | draw drift

mlm-embed --pca 2 embedded.jsonl | draw plane

mlm-basins --clusters 3 --seed 1 --start-field id --summary embedded.jsonl | draw basins

draw times examples/phase-diagram/tiny-en-pairs.jsonl

draw phase examples/phase-diagram/tiny-en-summary.jsonl

echo "a b" | mlm-couple --model table.json --lag 5 --pairs 60 --max-steps 1000 --tau 0.5,1 --seed 1 |
    mlm-couple --summary | draw lag

printf 'a a\nb c\n' | mlm-sample --model table.json --tau 0.25,0.4 --steps 6000 --on-change --seed 1 |
    mlm-traps --model table.json --radius 0 --min-steps 20 | draw residence

printf 'a a\nb c\nc c\nb b\n' | mlm-sample --model table.json --tau 0.2,0.25,0.4,0.6 --steps 6000 --on-change --seed 1 |
    mlm-traps --model table.json --radius 0 --min-steps 3 --summary | draw slowness

for model in table joint; do
    echo "a b" | mlm-rect --model $model.json --rectangles 60 --draw uniform --seed 1
done | draw rectangles

printf 'a b\nc a\n' | mlm-influence --model table.json --tau 0.25,1 --matrix --seed 1 | draw influence

echo "a b" | mlm-exact --model table.json --top 3 --tau 0.2,0.3,0.5,1,2,4 | draw exact
