"""Write docs/python.md and man/mlm-api.7 from the docstrings of the public names: `python docs/build.py`.

A test compares both files with what this script makes.
"""

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DATE = "December 3, 2026"
INTRODUCTION = """The package has a function for each command. Functions take a model, texts or arrays and plain \
arguments, return arrays and NamedTuples, and print nothing. The same seed gives the same chain as the command does. \
Log-probabilities are in nats, times in steps. A wrong argument raises ValueError; a model or a file \
that cannot be read raises ModelError or InputError of mlmglauber.stream.errors."""
EXAMPLE = """\
import mlmglauber as mg

model = mg.open_model("tiny-en")
for state in mg.sample(model, "the cat sat on the mat", tau=0.5, steps=200, seed=1):
    print(state.step, state.text)
"""
FUNCTIONS = ("open_model", "truncate", "sample", "states_to_arrays", "rectangle", "rectangles", "influence",
             "meeting_times", "variation_bound", "stationary_mean", "exact", "traps", "margins", "score", "embed",
             "drift", "drift_summary", "diagnose", "load", "state_records", "plot")
CLASSES = ("TableConditional", "State", "Trajectory", "MeetingTimes", "VariationBound", "DriftSummary")
RESULTS = {
    "mlmglauber.api.measures": ("RectangleDelta", "RectangleDeltas", "Influence"),
    "mlmglauber.measures.stationary.unbiased": ("StationaryEstimate",),
    "mlmglauber.measures.exact.solve": ("Exact", "Rectangles", "Basin"),
    "mlmglauber.measures.exact.mixing": ("Second", "Mixing"),
    "mlmglauber.measures.traps.tracker": ("Trap", "Flicker"),
    "mlmglauber.measures.traps.margins": ("Margins",),
    "mlmglauber.measures.score.text_score": ("TextScore",),
    "mlmglauber.models.embedder": ("Embedded",),
    "mlmglauber.measures.statistics.diagnostics": ("Diagnostics",),
}
"""What functions return that is no public name, by module."""
SECTIONS = (("Functions", FUNCTIONS), ("Classes", CLASSES),
            ("Results", tuple(name for names in RESULTS.values() for name in names)))


def parts(name: str) -> tuple[str, list[str], str]:
    """(signature, paragraphs, examples) of a public name or of a result."""
    module = next((module for module, names in RESULTS.items() if name in names), "mlmglauber")
    value: Any = getattr(import_module(module), name)
    text = inspect.getdoc(value) or ""
    prose, _, examples = text.partition(">>> ")
    paragraphs = [" ".join(part.split()) for part in prose.split("\n\n") if part.strip()]
    return signature(name, value), paragraphs, f">>> {examples}" if examples else ""


def signature(name: str, value: Any) -> str:
    """NAME(parameters) -> type, without the modules of the types."""
    found = inspect.signature(value)
    arguments, named = [], False
    for parameter in found.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not named:
            arguments.append("*")
            named = True
        stars = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        arguments.append(f"{stars}{parameter.name}: {annotation(parameter.annotation)}{default}")
    result = "" if isinstance(value, type) else f" -> {annotation(found.return_annotation)}"
    return f"{name}({', '.join(arguments)}){result}"


def annotation(value: Any) -> str:
    """A type as a reader writes it."""
    text = value if isinstance(value, str) else inspect.formatannotation(value)
    text = re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Za-z])", "", text)
    return re.sub(r"ndarray\[tuple\[Any, \.\.\.\], dtype\[(\w+)\]\]", r"NDArray[\1]", text)


def wrapped(text: str, width: int = 118) -> str:
    """A signature on several lines where it is long, one parameter a line."""
    if len(text) <= width:
        return text
    head, _, rest = text.partition("(")
    inside, _, result = rest.rpartition(")")
    arguments = re.split(r", (?![^\[]*\])", inside)
    return f"{head}(\n" + "".join(f"    {argument},\n" for argument in arguments) + f"){result}"


def markdown() -> str:
    """The text of docs/python.md."""
    text = ["# mlmglauber in Python", "", "Made by docs/build.py from the docstrings.", "", INTRODUCTION, "",
            "```python", EXAMPLE.rstrip(), "```", ""]
    for title, names in SECTIONS:
        text += [f"## {title}", ""]
        for name in names:
            heading, paragraphs, examples = parts(name)
            text += [f"### {name}", "", "```python", wrapped(heading), "```", ""]
            text += [line for paragraph in paragraphs for line in (paragraph, "")]
            text += ["```python", examples.rstrip(), "```", ""] if examples else []
    return "\n".join(text).rstrip() + "\n"


def manual() -> str:
    """The text of man/mlm-api.7."""
    text = [r'.\" Made by docs/build.py from the docstrings.', f".Dd {DATE}", ".Dt MLM-API 7", ".Os mlmglauber",
            ".Sh NAME", ".Nm mlm-api", ".Nd the functions of mlmglauber for Python", ".Sh DESCRIPTION",
            *sentences(INTRODUCTION), *literal(EXAMPLE)]
    for title, names in SECTIONS:
        text.append(f".Sh {title.upper()}")
        for name in names:
            heading, paragraphs, examples = parts(name)
            text += [f".Ss {name}", *literal(wrapped(heading, 78))]
            for paragraph in paragraphs:
                text += [".Pp", *sentences(paragraph)]
            text += literal(examples) if examples else []
    text += [".Sh SEE ALSO", ".Xr mlm-sample 1 ,", ".Xr mlm-records 5 ,", ".Xr mlm-glauber 7"]
    return "\n".join(text) + "\n"


def sentences(text: str) -> list[str]:
    """A paragraph as mdoc reads it, each sentence on its own line."""
    lines = re.sub(r"\. (?=[A-Z])", ".\n", text.replace("\\", r"\e").replace("`", "")).splitlines()
    return [re.sub(r"^([.'])", r"\\&\1", line) for line in lines]


def literal(text: str) -> list[str]:
    """Text as it is, indented."""
    lines = [re.sub(r"^([.'])", r"\\&\1", line.replace("\\", r"\e")) for line in text.rstrip().splitlines()]
    return [".Bd -literal -offset indent", *lines, ".Ed"]


def main() -> None:
    (HERE / "python.md").write_text(markdown())
    (HERE.parent / "man" / "mlm-api.7").write_text(manual())


if __name__ == "__main__":
    main()
