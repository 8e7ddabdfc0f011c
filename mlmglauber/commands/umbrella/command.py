"""mlm: `mlm sample` is mlm-sample; alone it lists the commands; `mlm doctor` examines the installation.

`mlm examples` and `mlm schema` print where the files beside the package are.
"""

import sys
from collections.abc import Sequence
from importlib import import_module

from mlmglauber import __version__

COMMANDS = {
    "tokens": "show how a model cuts texts into tokens",
    "estimate": "estimate stationary means from coupled chains",
    "score": "score texts and states without a chain",
    "sample": "run Glauber chains from texts",
    "show": "show chains as they are rewritten",
    "rect": "test whether conditionals fit a joint law",
    "embed": "add embeddings to records with a text",
    "drift": "measure how far chains go from their text",
    "basins": "name the regions of the embedding space that chains visit",
    "couple": "couple chains in pairs and time their meeting",
    "influence": "measure how much sites influence each other",
    "traps": "find where chains get stuck, and why",
    "exact": "solve a small chain without sampling",
    "plot": "draw a picture of records",
    "report": "write one page on all records of an experiment",
}
"""The commands, in the order in which an experiment uses them."""

USAGE = 2


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `mlm NAME [ARGUMENT]...` as `mlm-NAME [ARGUMENT]...`; exit status 2 for a name that is no command."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    name = words[0] if words else "--help"
    if name in ("-h", "--help", "help"):
        print(overview())
    elif name == "--version":
        print(f"mlm (mlmglauber) {__version__}")
    elif name in ("doctor", "examples", "schema") and words[1:]:
        print(f"mlm: {name} takes no arguments; give 'mlm {name}' alone", file=sys.stderr)
        raise SystemExit(USAGE)
    elif name == "doctor":
        from mlmglauber.commands.umbrella.doctor import examine

        raise SystemExit(examine())
    elif name in ("examples", "schema"):
        from mlmglauber.commands.umbrella.places import place
        from mlmglauber.stream.errors import MlmError

        try:
            print(place(name))
        except MlmError as error:
            print(f"mlm: {error}", file=sys.stderr)
            raise SystemExit(error.status) from error
    elif name in COMMANDS:
        import_module(f"mlmglauber.commands.{name}.command").main.main(words[1:])
    else:
        print(f"mlm: there is no command {name!r}; 'mlm' lists them", file=sys.stderr)
        raise SystemExit(USAGE)


def overview() -> str:
    """What `mlm` prints: each command with a line that says what it does."""
    width = max(map(len, COMMANDS))
    lines = ["Usage: mlm COMMAND [OPTION]... [FILE]...", "",
             "Glauber dynamics on masked language models. The commands read and write JSON Lines, in pipes:", "",
             "  mlm sample passages.txt | mlm embed | mlm drift --summary", "",
             "Commands, in the order of an experiment (mlm sample is the same as mlm-sample):", ""]
    lines += [f"  {name:<{width}}  {purpose}" for name, purpose in COMMANDS.items()]
    lines += ["", f"  {'doctor':<{width}}  show versions, device and what is missing in this installation",
              f"  {'examples':<{width}}  print the folder with example texts and scripts",
              f"  {'schema':<{width}}  print the path of the JSON Schema of the records", "",
              "'mlm COMMAND --help' shows the options of daily use, --help-all all options, 'man mlm-COMMAND' more."]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
