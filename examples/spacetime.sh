#!/bin/bash
# The space-time picture of a chain that falls into a trap: a text about light turns into radiation. Writes
# spacetime.jsonl, the states of every change and the traps, and spacetime.png, into the folder OUT, by default the
# present one. Takes ten seconds. docs/spacetime.png was made by this script.
#     spacetime.sh [OUT]
[ -n "${BASH_VERSION:-}" ] || exec bash "$0" "$@" # for pipefail: every stage of a pipe may fail the script
set -euo pipefail
here=$(cd -- "$(dirname "$0")" && pwd)
cd -- "${1:-.}"
grep '"id": "light"' "$here/passages.jsonl" |
    mlm-sample --tau 0.3 --length 12 --steps 400 --on-change --seed 1 > chain.jsonl.part
mlm-traps chain.jsonl.part | cat chain.jsonl.part - > spacetime.jsonl
rm chain.jsonl.part
mlm-plot --kind spacetime --width 7 --title 'A chain of a masked language model falls into a trap' \
    -o spacetime.png spacetime.jsonl
