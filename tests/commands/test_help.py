"""--help is one screen with the options of daily use, in groups; --help-all shows every option once."""

import importlib
import math
import re
from collections import Counter

import click
import pytest

from mlmglauber.commands.shared.command_line import fitted
from mlmglauber.commands.umbrella.command import COMMANDS

pytestmark = pytest.mark.in_process

ROWS, COLUMNS = 46, 80
"""Of the screen on which --help stands."""
LINES = [*((name,) for name in COMMANDS), ("traps", "chains"), ("traps", "find"), ("traps", "certify")]
ALIASES = [
    ("sample --start random --steps 3", "sample --init random --steps 3"),
    ("sample --pll 1 --steps 3", "sample --energy 1 --steps 3"),
    ("couple --start random --every 2 --max-steps 6", "couple --start random --emit 2 --max-steps 6"),
    ("exact --allow a,b --matrix", "exact --vocab a,b --influences"),
    ("rect --rectangles 2 --summary", "rect --rectangles 2 --summarize"),
    ("traps certify --token a", "traps --certify a"),
]
"""Command lines that do the same: with the name of an option, and with its older name."""


def load(name):
    """The module of a command."""
    return importlib.import_module(f"mlmglauber.commands.{name}.command")


def options_of(command):
    """The options that are shown."""
    context = click.Context(command, help_option_names=["-h", "--help"])  # click keeps the help option made first
    return [option for option in command.get_params(context) if isinstance(option, click.Option) and not option.hidden]


@pytest.fixture
def helped(capsys, monkeypatch):
    """The lines that a command prints with an option of help, for a terminal of `columns` columns."""

    def helped(words, option, columns=COLUMNS):
        monkeypatch.setenv("COLUMNS", str(columns))
        load(words[0]).main([*words[1:], option])
        shown = capsys.readouterr()
        assert shown.err == ""
        return shown.out.splitlines()

    return helped


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_stands_in_exactly_one_group(name):
    module = load(name)
    options = {max(option.opts, key=len).lstrip("-") for option in options_of(module.main)}
    grouped = Counter(word for group in module.main.groups for word in f"{group.daily} {group.more}".split())
    assert {option: grouped[option] for option in options} == dict.fromkeys(options, 1)
    own = {word for group in module.GROUPS for word in f"{group.daily} {group.more}".split()}
    assert own <= options, "groups name options that the command does not have"


@pytest.mark.parametrize("words", LINES, ids=" ".join)
def test_the_short_help_fits_on_a_screen_and_the_whole_one_has_every_option(helped, words):
    short, whole = helped(words, "--help"), helped(words, "--help-all")
    assert sum(max(1, math.ceil(len(line) / COLUMNS)) for line in short) <= ROWS
    assert short == helped(words, "-h")
    for lines in (short, whole):
        assert all("[OPTIONS]" not in line or line.startswith("Usage: mlm-") for line in lines)
        assert "  --help-all" in {line[:12] for line in lines}
    main = load(words[0]).main
    mode = words[1] if len(words) > 1 else next(iter(getattr(main, "modes", {None: None})))
    wanted = {name for option in options_of(main) if mode is None or mode in main.modes_of(option)
              for name in (*option.opts, *option.secondary_opts)}
    first = next(k for k, line in enumerate(whole) if re.fullmatch(r"[A-Z][a-z ]+:", line))
    heads = [re.split(r" {2,}|$", line[2:])[0] for line in whole[first:] if line.startswith("  -")]
    shown = [name for head in heads for name in re.findall(r"(?:^|[ ,/])(--?[a-z][a-z-]*)", head)]
    assert sorted(shown) == sorted(wanted)
    assert len(short) < len(whole)


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_no_line_of_a_help_is_wider_than_the_terminal(helped, columns):
    """But for command lines to be copied, which are broken after pipes alone, and long names of options."""
    for words in LINES:
        lines = helped(words, "--help-all", columns)
        for line in lines[:lines.index("Examples:")]:
            assert len(line) <= columns or re.fullmatch(r" +-\S.*[\w\]}.]|.*\S{15,}", line), line
        text = "\n".join(helped(words, "--help", columns))
        assert not {"\xa0", "\u2011"} & set(text)
        assert not re.search(r"mlm-$|\[default:$", text, re.MULTILINE)


def test_examples_are_broken_after_pipes():
    assert fitted("  a --b | c", 80) == "  a --b | c"
    assert fitted("  aaaa | bbbb | cccc > d", 16) == "  aaaa | bbbb |\n      cccc > d"
    assert fitted("  aaaaaaaaaaaaaaaaaaaaaa", 8) == "  aaaaaaaaaaaaaaaaaaaaaa"


@pytest.mark.parametrize(("line", "older"), ALIASES)
def test_older_names_of_options_do_the_same_and_are_not_shown(sh, tables, helped, line, older):
    seed = "" if line.startswith("exact") else " --seed 1"
    done = sh(f"printf 'a b\\n' | mlm-{line} -m a.json{seed}")
    assert (done.status, done.err) == (0, "")
    assert done.out
    assert sh(f"printf 'a b\\n' | mlm-{older} -m a.json{seed}") == done
    shown = "\n".join(helped(line.split()[:1], "--help-all"))
    gone = {word for word in older.split() if word.startswith("--")} - set(line.split())
    assert gone
    assert not [word for word in gone if re.search(rf"^ +(-\w, )?{word}\b", shown, re.MULTILINE)]
