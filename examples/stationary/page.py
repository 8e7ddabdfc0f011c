"""The page of run.sh: means under the stationary law beside those of passages and of cold chains, in Markdown.

    python3 page.py FOLDER

It needs no library. Means of passages have a standard error over passages, those of cold chains one over texts.
"""

import json
import math
import sys
from collections import defaultdict
from pathlib import Path

TOPICS = ("arts", "food", "geography", "health", "nature", "politics", "science", "sports")
FIELDS = ("pll", "repeats", *(f"basin={topic}" for topic in TOPICS))
NAMES = {"pll": "log-probability a token, nats", "repeats": "repeated tokens a text"}
HEAD = """\
# The stationary law of tiny-en

The paper leaves open what the stationary law of a chain of a masked language model looks like. Coupled chains tell it
without bias where they meet, as here for the words of two texts:

<!-- long -->

    head -n 2 examples/passages.txt |
        mlm-couple --tau 3 --length 8 --lag 240 --on-change --until 640 --seed 1 > pairs.jsonl
    mlm-estimate --of words,count:the --table pairs.jsonl

mlm-estimate(1) says how. The rest of this page is what

<!-- elsewhere -->

    bash examples/stationary/run.sh FOLDER > docs/stationary.md

printed. Its functions are the log-probability of a token given the others, averaged over the tokens of a text
(`mlm-score`), the tokens that repeat another one of the text, and the share of texts whose nearest example text is of a
topic (`mlm-basins`, embeddings of all-MiniLM-L6-v2; a text that is near no topic counts for none). Each mean has its
standard error.

- *stationary*: unbiased estimates from pairs of chains from {texts} passages, with a lag of 30 n steps, averaged to
  step 80 n.
- *cold chains*: averages over the second half of 100 sweeps of one chain from each of these passages. They are no
  estimates of a stationary mean: such chains stay where they began, and where a start stays it counts.
- *passages*: the first n tokens of the {passages} bundled passages.
"""


def mean_and_error(groups):
    """The mean of the means of groups, and its standard error; None for one group."""
    means = [sum(values) / len(values) for values in groups if values]
    mean = sum(means) / len(means)
    if len(means) < 2:
        return mean, None
    return mean, math.sqrt(sum((value - mean) ** 2 for value in means) / (len(means) - 1) / len(means))


def texts_of(path):
    """The number of texts whose states a file has."""
    return len({record["id"] for record in map(json.loads, path.open()) if record["type"] == "state"})


def value_of(state, field):
    """The value of a field of a state, or whether its basin is the named one; None if it is not known."""
    name, _, wanted = field.partition("=")
    return float(state[name] == wanted) if wanted else state.get(name)


def columns_of(path, late):
    """{tau: {field: (mean, error)}} of the states of a file. late: of the second half of each chain."""
    chains = defaultdict(lambda: defaultdict(list))
    for line in path.open():
        record = json.loads(line)
        if record["type"] == "state":
            chains[record["tau"]][record["id"]].append(record)
    found = {}
    for tau, texts in sorted(chains.items()):
        found[tau] = {}
        for field in FIELDS:
            groups = []
            for states in texts.values():
                last = max(state["step"] for state in states)
                values = [value_of(state, field) for state in states if not late or 2 * state["step"] >= last]
                groups.append([value for value in values if value is not None])
            found[tau][field] = mean_and_error(groups)
    return found


def shown(field, number, n):
    """A mean and its standard error as a cell."""
    mean, error = number
    scale, digits = (1 / n, 2) if field == "pll" else (1, 2) if field == "repeats" else (100, 1)
    text = f"{mean * scale:.{digits}f}" + ("" if error is None else f" ± {error * scale:.{digits}f}")
    return text + (" %" if "=" in field else "")


def main(folder):
    """Print the page."""
    estimates = [json.loads(line) for line in (folder / "estimates.jsonl").open()]
    lengths = sorted({record["n"] for record in estimates})
    print(HEAD.format(texts=texts_of(folder / f"cold-{lengths[0]}.jsonl"),
                      passages=texts_of(folder / f"corpus-{lengths[0]}.jsonl")))
    for n in lengths:
        print_length(folder, [record for record in estimates if record["n"] == n], n)


def print_length(folder, estimates, n):
    """Print the tables of one length."""
    taus = sorted({record["tau"] for record in estimates})
    known = {tau: {record["field"]: (record["mean"], record["error"]) for record in estimates
                   if record["tau"] == tau and record["field"] != "token" and record["mean"] is not None}
             for tau in taus}
    first = {tau: next(record for record in estimates if record["tau"] == tau) for tau in taus}
    cold = columns_of(folder / f"cold-{n}.jsonl", late=True)
    corpus, = columns_of(folder / f"corpus-{n}.jsonl", late=False).values()
    names = ["passages", *(f"cold chains, tau {tau:g}" for tau in cold), *(f"stationary, tau {tau:g}" for tau in taus)]
    print(f"## Texts of {n} tokens\n")
    print("| |", " | ".join(names), "|")
    print("|---" * (len(names) + 1) + "|")
    for field in FIELDS:
        cells = [shown(field, corpus[field], n), *(shown(field, columns[field], n) for columns in cold.values())]
        cells += [shown(field, known[tau][field], n) if field in known[tau] else "—" for tau in taus]
        print("|", " | ".join([NAMES.get(field, field.removeprefix("basin=")), *cells]), "|")
    pairs = ["" for _ in [corpus, *cold]]
    pairs += [f"{first[tau]['pairs']} of {first[tau]['pairs'] + first[tau]['censored']}" for tau in taus]
    print("|", " | ".join(["pairs that met", *pairs]), "|")
    times = ["" for _ in [corpus, *cold]]
    times += ["—" if first[tau]["mean_meeting"] is None else
              f"{first[tau]['mean_meeting'] - first[tau]['lag']:.0f}" for tau in taus]
    print("|", " | ".join(["mean steps together until they met", *times]), "|")
    lost = [tau for tau in taus if not known[tau]]
    if lost:
        listed = ", ".join(f"{tau:g}" for tau in lost)
        print(f"\nA dash: at tau {listed} not all pairs met within {60 * n} steps, so nothing can be estimated.")
    print("\nThe most frequent tokens of the stationary law, with their shares of all tokens:\n")
    for tau in taus:
        tokens = [record for record in estimates if record["tau"] == tau and record["field"] == "token"
                  and record["mean"] is not None and record["site"] is None]
        if tokens:
            listed = ", ".join(f"`{record['token']}` {100 * record['mean']:.2f} ± {100 * record['error']:.2f} %"
                               for record in tokens)
            print(f"- tau {tau:g}: {listed}")
    print()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
