"""Records of the commands in Python: read as columns, and drawn as pictures."""

from collections.abc import Iterable, Sequence
from importlib import import_module
from os import PathLike
from typing import Any

import numpy as np

from mlmglauber.api.chains import Trajectory
from mlmglauber.api.checks import python_errors
from mlmglauber.stream.lines import Lines
from mlmglauber.stream.records import Record, parse
from mlmglauber.stream.vectors import unpack

Source = str | PathLike[str] | Iterable[Record]
"""The name of a file of JSON Lines (plain or gzip), or records."""


@python_errors()
def load(source: Source, kind: str | None = None) -> Any:
    """The records of one type as columns: a pandas DataFrame where pandas is installed, else a dict of numpy arrays.

    kind: the type of the records ("state", "pair", "rectangle", "trap", "summary", ...); by default that of the first
    record that is not a run record. A field that some records lack is None there. Embeddings become float32 arrays.
    ValueError where there is no record of that type, InputError for a file that cannot be read.

    >>> import mlmglauber as mg
    >>> columns = mg.load([{"type": "state", "step": 0, "drift": 0.0}, {"type": "state", "step": 1, "drift": 0.5}])
    >>> columns["drift"].tolist()
    [0.0, 0.5]
    """
    rows = [record for record in read(source) if record.get("type") != "run"]
    if kind is None and rows:
        kind = rows[0].get("type")
    rows = [record for record in rows if record.get("type") == kind]
    if not rows:
        raise ValueError(f"no records of type {kind}" if kind else "no records")
    names = list(dict.fromkeys(name for record in rows for name in record))
    columns = {name: [_value(name, record.get(name)) for record in rows] for name in names}
    try:
        pandas: Any = import_module("pandas")
    except ImportError:
        return {name: _array(values) for name, values in columns.items()}
    return pandas.DataFrame(columns)


def read(source: Source) -> list[Record]:
    """All records of a file, or the records themselves; RecordError for a line that is no record."""
    if not isinstance(source, (str, PathLike)):
        if not isinstance(source, Iterable):
            raise ValueError(f"the source is {source!r}; give the name of a file, or records")
        return list(source)
    records = (parse(line, plain_text=False) for line in Lines([str(source)]))
    return [record for record in records if record is not None]


def state_records(trajectory: Trajectory, *, name: str = "0", **columns: Sequence[Any]) -> list[Record]:
    """The states of chains as records, as `mlm-sample` writes them: for plot, for load, or as lines for a command.

    name: the id of the text. columns: further fields, one value a state, such as drift. NaN becomes None. ValueError
    for a column of another length.

    >>> import mlmglauber as mg
    >>> model = mg.open_model(mg.TableConditional.from_joint([[0.4, 0.1], [0.1, 0.4]]), tokens=["a", "b"])
    >>> chain = mg.states_to_arrays(mg.sample(model, "a b", steps=1, seed=1))
    >>> mg.state_records(chain, drift=[0.0, 0.5])[1]["drift"]
    0.5
    """
    count, n = trajectory.ids.shape
    if wrong := [field for field, values in columns.items() if len(values) != count]:
        raise ValueError(f"{wrong[0]} has {len(columns[wrong[0]])} values for {count} states; give one a state")
    more = {field: np.asarray(values).tolist() for field, values in columns.items()}
    return [{"type": "state", "id": name, "chain": int(trajectory.chain[k]), "step": int(trajectory.step[k]),
             "tau": float(trajectory.tau[k]), "n": n, "text": trajectory.text[k], "ids": trajectory.ids[k].tolist(),
             **{field: None if values[k] != values[k] else values[k] for field, values in more.items()}}
            for k in range(count)]


@python_errors()
def plot(source: Source | Sequence[Record], kind: str | None = None, threshold: float = 0.5, *, color_by: str = "age",
         style: str = "default", width: float = 3.375, title: str = "", panels: Sequence[int | str] = ()) -> Any:
    """The picture of `mlm-plot` as a matplotlib figure.

    kind: what is drawn ("drift", "phase", "rectangles", "spacetime", ...), by default what the records are of.
    threshold: the drift at which a hitting time is drawn. color_by: the colours of a space-time picture, "age" (steps
    for which a token has stood) or "logp" (its log-probability in nats). style: "default", or "paper" for letters of 8
    points. width: of the figure, in inches; panels stand side by side where each has three. title: above all panels.
    panels: those to draw, by number from 1 on or by a part of the title. ValueError (MlmError) where the records make
    no picture, or for another name.
    """
    from mlmglauber.pictures.figure import figure
    from mlmglauber.pictures.kinds import KINDS
    from mlmglauber.pictures.palette import STYLES
    from mlmglauber.pictures.panel import select_panels
    from mlmglauber.pictures.records import PictureRecords

    for name, value, known in (("kind", kind, [None, *KINDS]), ("color_by", color_by, ["age", "logp"]),
                               ("style", style, list(STYLES))):
        if value not in known:
            raise ValueError(f"{name} is {value!r}; choose from {', '.join(map(str, known))}")
    if not 1.5 <= width <= 30:
        raise ValueError(f"width is {width}; give inches between 1.5 and 30")
    records = read(source)
    if not records:
        raise ValueError("no records; give a file or a list of them")
    drawn = PictureRecords(kind, color_by)
    for record in records:
        drawn.take(record)
    picture = drawn.picture(threshold)._replace(title=title)
    chosen = select_panels(picture, [str(panel) for panel in panels]) if panels else picture
    return figure(chosen, style, width, STYLES[style].dpi)


def _value(name: str, value: Any) -> Any:
    return unpack(value) if name == "embedding" and value is not None else value


def _array(values: list[Any]) -> Any:
    """An array of numbers, else of objects: what differs in length or may be None."""
    if all(isinstance(value, (int, float)) for value in values):
        return np.array(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
