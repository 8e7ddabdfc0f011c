"""Groups of options: --help shows those of daily use, --help-all shows all of them."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import click

ALL = f"{__name__}.all"
"""Key of the context's `meta` that is set when all options are to be shown."""

WIDEST = 26
"""Maximum width of the names of options beside which their help stands on the same line."""


class Group(NamedTuple):
    """Options that stand under one heading.

    daily, more: names of parameters, with spaces between; --help shows the first ones, --help-all shows both.
    """

    title: str
    daily: str = ""
    more: str = ""


SHARED = (
    Group("Model", "model", "dtype batch_size device revision trust_remote_code allow_pickle exact"),
    Group("Input", "", "form text text_field upper"),
    Group("Output", "summary table output", "csv md"),
    Group("Several processes", "", "shard dask"),
    Group("Errors and messages", "", "strict quiet verbose progress no_color"),
    Group("Help", "help_all", "help version"),
)
"""The groups of the options that commands share; a group of a command with one of these titles comes before them."""


def merged(own: Sequence[Group]) -> list[Group]:
    """The groups of a command, then the shared ones; groups of one title are one group."""
    groups: dict[str, Group] = {}
    for title, *names in (*own, *SHARED):
        before = groups.get(title, Group(title))
        groups[title] = Group(title, *(f"{a} {b}".strip() for a, b in zip(before[1:], names, strict=True)))
    return list(groups.values())


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
    by_name = {str(option.name): option for option in options}
    sections: list[tuple[str, list[tuple[str, str]]]] = []
    for group in groups:
        names = f"{group.daily} {group.more if whole else ''}".split()
        entries = [_entry(by_name[name], context, whole) for name in names if name in by_name]
        rows = [entry for entry in entries if entry is not None]
        if rows:
            sections.append((group.title, rows))
    width = max((len(name) for _, rows in sections for name, _ in rows if len(name) <= WIDEST), default=0)
    for title, rows in sections:
        with formatter.section(title):
            formatter.write_dl([(name.ljust(width), text) for name, text in rows], col_max=width)


def _entry(option: click.Option, context: click.Context, whole: bool) -> tuple[str, str] | None:
    """The names of an option and its help; None for a hidden option. Only the whole help tells ranges and variables."""
    record: Any = option.get_help_record(context)
    if record is None or whole:
        return record  # type: ignore[no-any-return]
    default = f"  [default: {option.default}]" if option.show_default and option.default is not None else ""
    return record[0], f"{option.help or ''}{default}"
