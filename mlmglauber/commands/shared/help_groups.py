"""Groups of options: --help shows those of daily use, --help-all shows all of them."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import click

ALL = f"{__name__}.all"
"""Key of the context's `meta` that is set when all options are to be shown."""

INDENT = 2
"""Columns before the names of an option."""

SHARE = 3
"""The help of an option begins on the line of its names if these are at most the SHARE-th part of the width."""


SPACE, HYPHEN = "\xa0", "\u2011"
"""Characters at which no line is broken; HelpFormatter puts them where a break would read badly, and takes them out."""


class HelpFormatter(click.HelpFormatter):
    """Breaks no line within a word with a hyphen, such as mlm-sample, or within a default, such as [default: 1]."""

    def write_text(self, text: str) -> None:
        super().write_text(_unbroken(text))

    def write_dl(self, rows: Iterable[tuple[str, str]], *args: Any, **kwargs: Any) -> None:
        super().write_dl([(name, _unbroken(text)) for name, text in rows], *args, **kwargs)

    def getvalue(self) -> str:
        return super().getvalue().replace(SPACE, " ").replace(HYPHEN, "-")


class HelpContext(click.Context):
    """The context of a command whose help HelpFormatter writes."""

    formatter_class = HelpFormatter


class Group(NamedTuple):
    """Options that stand under one heading.

    daily, more: names of options without their dashes, with spaces between; --help shows the first ones, --help-all
    shows both.
    """

    title: str
    daily: str = ""
    more: str = ""


SHARED = (
    Group("Output", "summary table output", "csv md dry-run"),
    Group("Model", "model", "dtype batch-size device revision trust-remote-code allow-pickle exact"),
    Group("Input", "", "format text text-field upper"),
    Group("Several processes", "", "shard dask"),
    Group("Errors and messages", "", "strict quiet verbose progress no-progress no-color"),
    Group("Help", "help-all", "help version"),
)
"""The groups of the options that commands share; a command's own options of one of these titles come first."""


def merged(own: Sequence[Group]) -> list[Group]:
    """The groups of a command, then the shared ones; groups of one title are one group."""
    shared = {group.title for group in SHARED}
    groups = {group.title: Group(group.title) for group in (*(one for one in own if one.title not in shared), *SHARED)}
    for title, daily, more in (*own, *SHARED):
        before = groups[title]
        groups[title] = Group(title, f"{before.daily} {daily}", f"{before.more} {more}")
    return list(groups.values())


def name_of(option: click.Option) -> str:
    """The name of an option as a group has it."""
    return max(option.opts, key=len).lstrip("-")


def help_all_option() -> click.Option:
    """--help-all, which shows the help with all options and ends the command."""

    def show(context: click.Context, _: click.Parameter, wanted: bool) -> None:
        if wanted and not context.resilient_parsing:
            context.meta[ALL] = True
            click.echo(context.get_help(), color=context.color)
            context.exit()

    return click.Option(["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=show,
                        help="Show all options and exit.")


def write_groups(groups: Sequence[Group], options: Iterable[click.Option], context: click.Context,
                 formatter: click.HelpFormatter) -> None:
    """Write the options under the headings of their groups, in the order of the groups."""
    whole = ALL in context.meta
    by_name = {name_of(option): option for option in options}
    sections: list[tuple[str, list[tuple[str, str]]]] = []
    for group in groups:
        names = f"{group.daily} {group.more if whole else ''}".split()
        entries = [_entry(by_name[name], context, whole, formatter.width - INDENT) for name in names if name in by_name]
        rows = [entry for entry in entries if entry is not None]
        if rows:
            sections.append((group.title, rows))
    widest = formatter.width // SHARE
    width = max((len(name) for _, rows in sections for name, _ in rows if len(name) <= widest), default=0)
    for title, rows in sections:
        with formatter.section(title):
            formatter.write_dl([(name.ljust(width), text) for name, text in rows], col_max=width)


def _entry(option: click.Option, context: click.Context, whole: bool, width: int) -> tuple[str, str] | None:
    """The names of an option and its help; None for a hidden option. Only the whole help tells ranges and variables.

    Choices that do not fit into `width` columns beside the names stand in the help.
    """
    record: Any = option.get_help_record(context)
    if record is None:
        return None
    names, text = record
    extra = text.removeprefix(option.help or "")
    if not whole:
        extra = f"  [default: {option.default}]" if option.show_default and option.default is not None else ""
    text = option.help or ""
    if isinstance(option.type, click.Choice) and len(names) > width:
        word = name_of(option).rpartition("-")[2].upper()
        names = f"{names.partition('[')[0]}{word}"
        *first, last = option.type.choices
        text = f"{text} {word} is {', '.join(first)} or {last}."
    return names, f"{text}{extra}"


def _unbroken(text: str) -> str:
    """The text with SPACE and HYPHEN where its lines must not be broken."""
    text = re.sub(r"(?<=[\w-])-(?=\w)", HYPHEN, text)
    return re.sub(r"\[(default|env var): [^]]{,24}\]", lambda match: match[0].replace(" ", SPACE), text)
