#!/bin/sh
# Every table and figure, one after the other:   QUICK=1 OUT=trial sh all.sh
set -eu
here=$(dirname "$0")
for part in rectangles drift phase-diagram traps politics; do
    echo "== $part"
    sh "$here/$part.sh"
done
