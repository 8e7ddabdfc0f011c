"""Choose the labelled examples and starts of mlm-basins: `python topics.py SOURCES EXAMPLES`.

Writes EXAMPLES/topics.jsonl, 40 summaries for each of eight labels out of those that tiny-en was trained on, and
EXAMPLES/starts.jsonl, seven for each of four labels out of the 500 that it never saw. A summary's label follows from
the topic of its article and the words of its short description; no summary stands in both files.
"""

import json
import re
import sys
from pathlib import Path

from corpus import HELD_OUT, summaries

EXAMPLES, STARTS = 40, 7
SHORTEST, LONGEST, LONGEST_START = 20, 80, 150
"""Words of a summary: long enough to tell its topic, short enough to read. Of a start only the first words are used."""

BIOGRAPHIES = 12
"""At most so many examples of a label are about people, so that no label means a biography."""

RULES = {
    "politics": (r"People|Society|Uncategorized|History",
                 r"president of|election|government|treaty|politic|prime minister|constitution|parliament|legislat|"
                 r"senator|democra|voting|suffrage|chancellor of"),
    "sports": (r"People|Everyday life",
               r"sport|football|tennis|cricket|basketball|baseball|athletic|olympi|ball game|boxer|swimmer|golfer|"
               r"martial art|hockey|racing|gymnast|cyclist|rugby|track and field"),
    "food": (r"Everyday life|Uncategorized|Biology and health",
             r"\bfood|\bdish\b|cuisine|bread|cheese|beverage|drink|edible|sauce|dessert|confection|pastry|baked|dairy|"
             r"soup|spice|cooking|meal\b|noodle|ferment|fruit|vegetable"),
    "health": (r"Biology and health",
               r"disease|disorder|medic|infection|syndrome|cancer|surg|health|vaccine|symptom|therap|illness|injur|"
               r"antibiotic|inflammation|deficiency"),
    "geography": (r"Geography", r"country|city|river|mountain|lake|island|\bsea\b|desert|province|capital|peninsula"),
    "science": (r"People|Physical sciences|Mathematics",
                r"physics|physicist|chemi|particle|\bstar\b|planet|astronom|energy|element|quantum|electr|mathemat|theorem|geolog"),
    "arts": (r"People|Arts",
             r"paint|music|novel|poe[mt]|opera|sculpt|composer|film|literary|instrument|\bplay\b|museum|dance|theatre"),
    "nature": (r"Biology and health", r"species|genus|family of|order of|breed of|clade of"),
}
"""Of each label: the topics of its articles, and the words of their descriptions."""

NOT_WHAT_THEY_SEEM = {"Arnold Schwarzenegger", "Al-Zahrawi"}
"""A politician whose summary tells of films, a chemist whose summary tells of surgery."""

STARTED = ("health", "sports", "food", "politics")


def labels(document: dict[str, str]) -> list[str]:
    """The labels whose rule a summary obeys."""
    return [label for label, (topic, words) in RULES.items()
            if re.match(topic, document["topic"]) and re.search(words, document["description"], re.I)]


def chosen(documents: list[dict[str, str]], label: str, count: int, longest: int) -> list[dict[str, str]]:
    """The first `count` summaries of that label and no other, in the corpus's shuffled order."""
    found: list[dict[str, str]] = []
    people = 0
    for document in documents:
        if not SHORTEST <= len(document["text"].split()) <= longest or document["title"] in NOT_WHAT_THEY_SEEM:
            continue
        if labels(document) != [label]:
            continue
        if document["topic"] == "People":
            people += 1
            if people > BIOGRAPHIES * count // EXAMPLES:
                continue
        found.append({"id": f"{label}-{len(found)}", "label": label} | document)
    return found[:count]


def main() -> None:
    sources, folder = map(Path, sys.argv[1:3])
    documents = summaries(sources)
    parts = {
        "topics": [row for label in RULES
                   for row in chosen(documents[HELD_OUT:], label, EXAMPLES, LONGEST)],
        "starts": [row for label in STARTED
                   for row in chosen(documents[:HELD_OUT], label, STARTS, LONGEST_START)],
    }
    for name, rows in parts.items():
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
