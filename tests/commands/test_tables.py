"""Tables of the commands: at any width, in a pipe, on a terminal and in a file; CSV and Markdown."""

import csv
import importlib
import io
import os
import pty
import subprocess
import sys
from itertools import pairwise
from types import SimpleNamespace

import click
import orjson
import pytest
from conftest import PATH, ROOT, quick_shell
from oracles import TABLE_A
from rich.cells import cell_len
from test_table_forms import LONG, ODD, WIDTHS, words_of

sys.path.insert(0, str(ROOT / "man"))
import build

pytestmark = pytest.mark.in_process

# Every table of every command.

STATES = "printf 'a b\\nc a\\n' | mlm-sample -m a.json -t 0.5,2 --chains 3 --seed 1 --steps 80 --every 1"
FORMS = {
    "drift": "mlm-drift --threshold 0.3,0.6 embedded",
    "basins": "mlm-basins --examples topics --start-field label embedded",
    "clusters": "mlm-basins --clusters 3 embedded",
    "rect": "mlm-rect -m a.json --rectangles 5 --seed 1 more",
    "path": "mlm-rect --path states",
    "couple": "mlm-couple pairs",
    "traps": "mlm-traps -m a.json --min-steps 5 states",
    "find": "mlm-traps -m a.json --find more",
    "influence": "mlm-influence -m a.json --seed 1 -t 0.5,1,2 more",
    "exact": "mlm-exact -m a.json --top 2 -t 0.5,1 --compare states more",
    "sample": "mlm-sample -m a.json --seed 1 -t 0.5,1 --steps 40 --energy 4 more",
}
every_form = pytest.mark.parametrize("command", FORMS.values(), ids=list(FORMS))


def lines(records):
    return b"".join(orjson.dumps(record) + b"\n" for record in records)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Records for every table; the ids, models and labels among them are long, odd or wide."""
    sh = quick_shell(tmp_path_factory.mktemp("tables"))
    (sh.folder / "a.json").write_bytes(orjson.dumps({"tokens": ["a", "b", "c"], "tables": TABLE_A}))
    (sh.folder / "more").write_bytes(lines({"id": key, "text": text} for key, text in (
        ("0", "a b"), (LONG, "c a"), (ODD, "b b"))))
    turn = [[1, 0], [1, 0.2], [1, 1], [0, 1], [-1, 0.5], [-1, 0]]
    (sh.folder / "embedded").write_bytes(lines(
        {"type": "state", "run": "r", "id": f"{tau} {k}", "chain": 0, "step": step, "tau": tau, "n": 12,
         "embedder": "e", "text": "a", "label": [ODD, "東京都 の天気"][k % 2],
         "embedding": turn[int(step * (k + 1) * tau + k) % 6]}
        for tau in (0.5, 1.0) for k in range(4) for step in range(12)))
    (sh.folder / "topics").write_bytes(lines(
        {"label": label, "embedding": [x + 0.1 * k, y], "embedder": "e"} for k in range(5)
        for label, x, y in (("politics and law", 1, 0), ("food", -1, 0), (LONG, 0, 1))))
    (sh.folder / "pairs").write_bytes(lines(
        {"type": "pair", "run": "r", "id": str(k), "pair": 0, "model": model, "tau": tau, "n": n, "coupling": "maximal",
         "start": "text" if lag else "pair", "replicas": 2, "lag": lag, "meeting": lag + 10 * n + k, "censored": False,
         "max_steps": 10_000, "last_change": 5, "wasserstein": [k, 0]}
        for model in ("tiny-en", LONG) for tau in (0.5, 1.0, 2.0) for n in (8, 16) for lag in (0, 4) for k in range(6)))
    assert sh(f"{STATES} > states").status == 0
    return sh


def declared(command):
    module = importlib.import_module(f"mlmglauber.commands.{command.removeprefix('mlm-')}.table")
    return module.TABLES


@every_form
def test_every_table_at_every_width_and_in_a_file(made, command):
    """All figures of the table without a limit stand in each narrower one, in one piece, and no line is too long."""
    done = [made(f"{command} --table > file", COLUMNS="40"), made(f"{command} --table -o named", COLUMNS="40"),
            made(f"{command} --table | cat > pipe")]
    shown_at = {width: made(f"{command} --table", COLUMNS=str(width)) for width in WIDTHS}
    assert {each.status for each in [*done, *shown_at.values()]} == {0}
    whole = (made.folder / "file").read_text()
    assert (made.folder / "named").read_text() == (made.folder / "pipe").read_text() == whole
    assert "\x1b" not in whole
    cells = {cell.strip() for line in whole.splitlines() if line.startswith("│") for cell in line.split("│")} - {""}
    assert len(cells) > 4
    longest = max(map(cell_len, cells))
    for width in WIDTHS:
        shown = shown_at[width].out.decode()
        rows = words_of(shown)
        for cell in cells:
            text = " ".join(cell.split())
            assert any(text in row for row in rows) or (" " in text and text in " ".join(rows))
        assert max(map(cell_len, shown.splitlines())) <= max(width, longest + 4, len(LONG) + 8)
        assert "…" not in shown


@every_form
def test_every_table_as_csv_and_markdown(made, command):
    table, found, marked = (made(f"{command} --{form}") for form in ("table", "csv", "md"))
    assert {table.status, found.status, marked.status} == {0}, found.err
    rows = list(csv.reader(io.StringIO(found.out.decode())))
    assert len({len(row) for row in rows}) == 1
    assert len(set(rows[0])) == len(rows[0])
    shown = table.out.decode().splitlines()
    assert len(rows) - 1 == sum(line.startswith("│") for line in shown)
    assert sum(line.startswith("| ") for line in marked.out.decode().splitlines()) == len(rows) - 1 + 2 * sum(
        line.startswith("┏") for line in shown)


@every_form
def test_one_form_at_a_time_and_none_that_is_silent(made, command):
    done = made(f"{command} --csv --md")
    assert (done.status, done.out) == (2, b"")
    assert "exclude each other" in done.err
    records = made(f"{command} --no-table")
    assert all(isinstance(orjson.loads(line), dict) for line in records.out.splitlines())


def test_figures_of_a_csv_file_are_those_of_the_records(made):
    records = [record for record in made(f"{FORMS['drift']} --summary").records if record["over"] == "group"]
    rows = list(csv.DictReader(io.StringIO(made(f"{FORMS['drift']} --csv").out.decode())))
    parts = [(group, hitting) for group in records for hitting in group["hitting"]]
    assert len(rows) == len(parts) == 4
    for row, (group, hitting) in zip(rows, parts, strict=True):
        assert float(row["plateau drift"]) == group["plateau"]
        for key, field in (("", "median"), (" low", "median_low"), (" high", "median_high")):
            told = row[f"median hitting time{key}"]
            assert (float(told) if told else None) == hitting[field]


def test_the_table_of_samples_counts_what_the_states_say(made):
    """Against the states themselves, at every temperature."""
    command = "mlm-sample -m a.json --seed 1 -t 0.5,1 --chains 2 --steps 40 --every 4 more"
    states = made(command).states
    rows = list(csv.DictReader(io.StringIO(made(f"{command} --csv").out.decode())))
    assert len(rows) == 2
    for row in rows:
        mine = [state for state in states if state["tau"] == float(row["tau"])]
        chains = {}
        for state in mine:
            chains.setdefault((state["id"], state["chain"]), []).append(state["ids"])
        moves = [a != b for ids in chains.values() for a, b in pairwise(ids)]
        apart = [sum(a != b for a, b in zip(ids[0], ids[-1], strict=True)) / 2 for ids in chains.values()]
        assert (int(row["texts"]), int(row["chains"]), int(row["steps"])) == (3, 6, 40)
        assert int(row["states"]) == len(mine) == 66
        assert float(row["moved"]) == pytest.approx(sum(moves) / len(moves))
        assert float(row["sites changed"]) == pytest.approx(sum(apart) / len(apart))
        assert int(row["unmoved chains"]) == sum(ids.count(ids[0]) == len(ids) for ids in chains.values())


@pytest.mark.parametrize(("line", "said"), [
    ("mlm-sample -m a.json --table --from-run f --check more", "--table writes no states"),
    ("mlm-sample -m a.json --table --resume f more", "--table writes no states"),
    ("mlm-traps -m a.json --certify a --table more", "--certify and --scan-tokens write records"),
    ("mlm-influence -m a.json --dask local:1 --csv more", "--csv needs all records"),
])
def test_tables_that_cannot_be_are_usage_errors(made, line, said):
    made("mlm-sample -m a.json --seed 1 --steps 2 more > f")
    done = made(line)
    assert (done.status, done.out) == (2, b"")
    assert said in done.err


def on_a_terminal(made, command, columns, **environment):
    master, terminal = pty.openpty()
    import fcntl
    import struct
    import termios

    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    variables = {**{k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}, "PATH": PATH,
                 "TERM": "xterm-256color", **environment}
    process = subprocess.Popen(["bash", "-c", command], cwd=made.folder, stdin=subprocess.DEVNULL, stdout=terminal,
                               stderr=subprocess.DEVNULL, env=variables)
    os.close(terminal)
    seen = b""
    try:
        while block := os.read(master, 1 << 16):
            seen += block
    except OSError:
        pass
    assert process.wait(60) == 0
    os.close(master)
    return seen.decode()


def test_a_terminal_has_the_table_as_wide_as_it_is_or_as_columns_says(made):
    command = "mlm-drift --summary embedded"
    for columns, variables in ((60, {}), (200, {"COLUMNS": "60"}), (60, {"COLUMNS": "0"}), (60, {"COLUMNS": "wide"})):
        seen = on_a_terminal(made, command, columns, NO_COLOR="1", **variables)
        assert "\x1b" not in seen
        assert seen.replace("\r", "") == made(f"{command} --table | cat", COLUMNS="60").out.decode()
    assert "\x1b[1m" in on_a_terminal(made, command, 80)
    on_a_terminal(made, f"{command} --table -o kept", 60)
    assert (made.folder / "kept").read_bytes() == made(f"{command} --table").out


def test_nothing_heavy_is_imported_for_the_options_of_tables():
    code = "import sys, mlmglauber.commands.shared.tables; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert not {"rich", "numpy", "mlmglauber.commands.shared.table_forms"} & set(loaded.split())


def test_every_command_with_a_table_declares_it_and_its_page_explains_each_heading():
    with_option = set()
    for command in build.COMMANDS:
        main = importlib.import_module(f"mlmglauber.commands.{command.removeprefix('mlm-')}.command").main
        flags = {flag for option in main.params if isinstance(option, click.Option) for flag in option.opts}
        if "--table" in flags:
            assert {"--csv", "--md"} <= flags
            with_option.add(command)
        if "--summary" in flags or "--summarize" in flags:
            assert "--table" in flags
    assert with_option == set(build.TABLES) >= {"mlm-influence", "mlm-exact", "mlm-sample"}
    files = {f"mlm-{path.parent.name}" for path in (ROOT / "mlmglauber" / "commands").glob("*/table.py")}
    assert files == set(build.TABLES)
    for command in with_option:
        page = (ROOT / "man" / f"{command}.1").read_text()
        section = page[page.index(".Ss Tables") : page.index(".Sh ENVIRONMENT")]
        for table in declared(command):
            assert len({column.heading for column in table.columns}) == len(table.columns)
            for column in table.columns:
                assert f".It {build.quoted(column.heading)}\n{build.escape(column.meaning)}\n" in section
                assert column.meaning.endswith(".")


def test_headings_stand_by_themselves():
    """A heading may stand in the title, away from its neighbours: it is not about the one before it."""
    for command in build.TABLES:
        for table in declared(command):
            for column in table.columns:
                assert not set(column.heading.split()) & {"it", "its", "these", "same"}
                assert column.heading.split()[0] != "that"


def test_the_width_is_that_of_the_output(monkeypatch, tmp_path):
    from mlmglauber.commands.shared.table_output import width

    reader, writer = os.pipe()
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(fileno=lambda: writer, isatty=lambda: False))
    piped, named = (SimpleNamespace(output=SimpleNamespace(path=path)) for path in (None, "x"))
    for asked, found in (("70", 70), ("0", None), ("", None), ("-5", None), ("7.5", None), ("９０", None)):
        monkeypatch.setenv("COLUMNS", asked)
        assert (width(piped), width(named)) == (found, None)
    os.close(reader)
    os.close(writer)
