"""MS MARCO passages as JSON Lines: python msmarco.py --count 1000 > passages.jsonl

The data is fetched by `datasets` (pip install datasets) under its own terms, non-commercial research; none is part of
this project. Passages of --min to --max words, each once, in the order of the data set.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any


def passages(rows: Iterable[dict[str, Any]], count: int, least: int, most: int = 1000) -> Iterator[dict[str, str]]:
    """The first `count` different passages of `least` to `most` words of rows as ms_marco has them.

    >>> rows = [{"query_id": 7, "passages": {"passage_text": ["too short", "a b c", "a b c", "much too long a text"]}}]
    >>> list(passages(rows, 5, 3, 4))
    [{'id': '7/1', 'text': 'a b c'}]
    """
    seen: set[str] = set()
    for row in rows:
        for number, text in enumerate(row["passages"]["passage_text"]):
            text = " ".join(text.split())
            if not least <= len(text.split()) <= most or text in seen:
                continue
            seen.add(text)
            yield {"id": f"{row['query_id']}/{number}", "text": text}
            if len(seen) == count:
                return


def main() -> None:
    parser = argparse.ArgumentParser(description="Write MS MARCO passages as JSON Lines.")
    parser.add_argument("--count", type=int, default=1000, help="how many (default 1000)")
    parser.add_argument("--min", type=int, default=50, help="words that a passage has at least (default 50)")
    parser.add_argument("--max", type=int, default=1000, help="words that a passage has at most (default 1000)")
    parser.add_argument("--version", default="v2.1", help="configuration of the data set (default v2.1)")
    given = parser.parse_args()
    try:
        from datasets import load_dataset
    except ImportError:
        sys.exit("msmarco.py needs the package datasets; pip install datasets")
    rows = load_dataset("microsoft/ms_marco", given.version, split="validation", streaming=True)
    for passage in passages(rows, given.count, given.min, given.max):
        print(json.dumps(passage))


if __name__ == "__main__":
    main()
