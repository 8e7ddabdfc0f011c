"""Runs tour.ipynb again and stores its outputs without what depends on the machine:
`python examples/notebooks/build.py`.

Needs the extras offline, plot and test. The test of the notebook uses the same functions.
"""

from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

TOUR = Path(__file__).with_name("tour.ipynb")
KERNEL = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
          "language_info": {"name": "python"}}
LIMIT = 600
"""Maximum number of seconds for one cell, for a machine that does other work too."""


def run(path: Path) -> Any:
    """The notebook of a file after all of its cells ran in its folder; the error of a cell ends the run."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=LIMIT, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}},
                   record_timing=False).execute()
    return cleaned(notebook)


def cleaned(notebook: Any) -> Any:
    """The notebook without versions and times, which differ from machine to machine."""
    notebook.metadata = nbformat.from_dict(KERNEL)
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({})
        for output in cell.get("outputs", []):
            output.pop("metadata", None)
            if output.output_type in ("display_data", "execute_result"):
                output.metadata = nbformat.from_dict({})
    return notebook


def printed(cell: Any) -> str:
    """The text that a code cell printed; pictures are left out."""
    return "".join(output.text for output in cell.outputs if output.output_type == "stream")


def main() -> None:
    notebook = run(TOUR)
    nbformat.validate(notebook)
    nbformat.write(notebook, TOUR)


if __name__ == "__main__":
    main()
