"""The files that are installed beside the package: the folder of the examples and the JSON Schema of the records."""

from pathlib import Path

from mlmglauber.stream.errors import MlmError

PACKAGE = Path(__file__).parents[2]
SHARE = Path("share", "mlmglauber")
"""Where the files are, under the prefix of an environment."""
PLACES = {"examples": Path("examples"), "schema": Path("man", "mlm-records.schema.json")}
"""What `mlm NAME` prints: the path of each in a checkout. Under SHARE the last part of the path is the same."""


def place(name: str) -> Path:
    """The path of the examples or the schema: of the checkout that holds this package, else of its environment."""
    checkout = PACKAGE.parent
    candidates = [checkout / PLACES[name]] if (checkout / "pyproject.toml").exists() else []
    candidates += [prefix / SHARE / PLACES[name].name for prefix in PACKAGE.parents]
    for candidate in candidates:
        if candidate.exists():
            return candidate
    raise MlmError(f"{SHARE / PLACES[name].name} is not installed beside {PACKAGE}; install mlmglauber again with pip")
