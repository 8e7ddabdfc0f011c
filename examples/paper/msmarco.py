"""MS MARCO passages as JSON Lines: python msmarco.py --count 1000 > passages.jsonl

The data is fetched by `datasets` (pip install datasets) under its own terms, non-commercial research; none is part of
this project. Long enough passages only, each once, in the order of the data set.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any


def passages(rows: Iterable[dict[str, Any]], count: int, words: int) -> Iterator[dict[str, str]]:
    """The first `count` different passages of `words` words or more of rows as ms_marco has them.

    >>> rows = [{"query_id": 7, "passages": {"passage_text": ["too short", "a b c", "a b c"]}}]
    >>> list(passages(rows, 5, 3))
    [{'id': '7/1', 'text': 'a b c'}]
    """
    seen: set[str] = set()
    for row in rows:
        for number, text in enumerate(row["passages"]["passage_text"]):
            text = " ".join(text.split())
            if len(text.split()) < words or text in seen:
                continue
            seen.add(text)
            yield {"id": f"{row['query_id']}/{number}", "text": text}
            if len(seen) == count:
                return


def main() -> None:
    parser = argparse.ArgumentParser(description="Write MS MARCO passages as JSON Lines.")
    parser.add_argument("--count", type=int, default=1000, help="how many (default 1000)")
    parser.add_argument("--words", type=int, default=50, help="words that a passage has at least (default 50)")
    parser.add_argument("--version", default="v2.1", help="configuration of the data set (default v2.1)")
    given = parser.parse_args()
    try:
        from datasets import load_dataset
    except ImportError:
        sys.exit("msmarco.py needs the package datasets; pip install datasets")
    rows = load_dataset("microsoft/ms_marco", given.version, split="validation", streaming=True)
    for passage in passages(rows, given.count, given.words):
        print(json.dumps(passage))


if __name__ == "__main__":
    main()
