"""Choose the bundled passages: `python passages.py CORPUS > passages.jsonl`.

The 200 held-out summaries nearest to 36 words, whole, with their titles and topics: long enough for 32 tokens, short
enough to read.
"""

import json
import re
import sys
import unicodedata
from pathlib import Path

COUNT, WORDS = 200, 36


def main() -> None:
    lines = (Path(sys.argv[1]) / "held_out.jsonl").read_text(encoding="utf-8").splitlines()
    documents = [json.loads(line) for line in lines]
    near = sorted(documents, key=lambda document: abs(len(document["text"].split()) - WORDS))[:COUNT]
    for document in (document for document in documents if document in near):
        plain = unicodedata.normalize("NFKD", document["title"]).encode("ascii", "ignore").decode().lower()
        passage = {"id": re.sub(r"[^a-z0-9]+", "-", plain).strip("-"), **document}
        print(json.dumps(passage, ensure_ascii=False))


if __name__ == "__main__":
    main()
