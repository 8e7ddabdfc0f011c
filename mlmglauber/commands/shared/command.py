"""Makes a command of a function over records: its shared options, its exit status, its error messages."""

import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import click

from mlmglauber import __version__
from mlmglauber.commands.shared.command_line import Command
from mlmglauber.commands.shared.filter import Filter, Function
from mlmglauber.commands.shared.help_groups import Group, help_all_option, merged
from mlmglauber.commands.shared.modes import Mode, ModeCommand, complete_first
from mlmglauber.commands.shared.options import Options, take_reading, take_table
from mlmglauber.commands.shared.process import settle_process
from mlmglauber.commands.shared.reporter import Reporter
from mlmglauber.commands.shared.spread.plan import Spread
from mlmglauber.stream.errors import ExitStatus, MlmError, MlmWarning
from mlmglauber.stream.interrupts import TerminatedError, deferred
from mlmglauber.stream.output import ClosedPipeError, open_output

CLOSED_PIPE = 141
"""Exit status when the reader of the output has gone, as a shell reports a death by SIGPIPE."""


def record_command(function: Function, options_class: type[Options], description: str, examples: str,
                   groups: Sequence[Group], spread: Spread | None = None,
                   modes: Mapping[str, Mode] | None = None) -> Command:
    """The command mlm-NAME of a function NAME(io, options) over records.

    options_class: the dataclass with a field for each of the function's own options. groups: the headings under which
    the help shows these options; the options that commands share have groups of their own. spread: how --shard and
    --dask divide the command's work, None where they do not. modes: for a command whose first argument may name a mode.
    """
    name = f"mlm-{function.__name__}"

    def callback(files: tuple[str, ...], output: str | None, strict: bool, quiet: bool, verbose: int,
                 progress: str | None, no_color: bool, **values: Any) -> None:
        color = not (no_color or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb")
        reporter = Reporter(name, quiet, verbose, progress, color)
        raise SystemExit(_run(function, options_class, spread, reporter, files, strict, output, values))

    own_options = list(reversed(getattr(function, "__click_params__", [])))
    inputs = click.Argument(["files"], nargs=-1, type=click.Path(), metavar="[FILE]...",
                            shell_complete=complete_first(modes) if modes else None)
    settings: dict[str, Any] = {
        "callback": callback, "help": description, "epilog": examples,
        "params": [inputs, *own_options, *_shared_options(name)],
        "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 100}}
    command = ModeCommand(name, modes=modes, **settings) if modes else Command(name, **settings)
    command.groups = merged(groups)
    return command


def _shared_options(name: str) -> list[click.Parameter]:
    def version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
        if wanted:
            click.echo(f"{name} (mlmglauber) {__version__}")
            context.exit()

    return [
        click.Option(["-o", "--output"], metavar="FILE", help="Write to FILE, which appears when all is written."),
        click.Option(["--strict"], is_flag=True, help="Stop at the first bad record."),
        click.Option(["-q", "--quiet"], is_flag=True, help="Write no warnings, counts or progress."),
        click.Option(["-v", "--verbose"], count=True, help="Write tracebacks with errors."),
        click.Option(["--progress"], flag_value="bar",
                     help="Show progress on standard error; by default on a terminal. --progress=json writes a line of "
                          "JSON a second for other programs: see mlm-records(5)."),
        click.Option(["--no-progress", "progress"], flag_value="none", help="Show no progress."),
        click.Option(["--progress-bar", "progress"], flag_value="bar", hidden=True),
        click.Option(["--progress-json", "progress"], flag_value="json", hidden=True),
        click.Option(["--no-color"], is_flag=True, help="Use no colour, as with NO_COLOR or TERM=dumb."),
        click.Option(["--version"], is_flag=True, is_eager=True, expose_value=False, callback=version,
                     help="Show the version and exit."),
        help_all_option(),
    ]


def _run(function: Function, options_class: type[Options], spread: Spread | None, reporter: Reporter,
         files: tuple[str, ...], strict: bool, path: str | None, values: dict[str, Any]) -> int:
    """Run a command's function over its input; the exit status."""
    settle_process()
    deferred.listen()
    warnings.showwarning = lambda message, category, *_: (
        reporter.warn(str(message)) if issubclass(category, MlmWarning) else None)
    try:
        with ExitStack() as stack:
            with deferred:  # an interrupt here must not leave the temporary file of the output behind
                dry_run = values.pop("dry_run", False)
                output = stack.enter_context(open_output(None if dry_run else path))
            if os.isatty(output.descriptor):
                output.before_write, output.clear = reporter.end_bar, reporter.clear.encode()
            reporter.typed = (not files or "-" in files) and os.isatty(sys.stdin.fileno())
            io = Filter(reporter, files, strict, output, take_reading(values))
            io.shard, address, io.dry_run = values.pop("shard", None), values.pop("dask", None), dry_run
            take_table(values)
            options = options_class(**values).with_files_read()
            if not dry_run:
                io.output = options.shown_output(output, path is not None, reporter.color)
            if address is not None:
                if dry_run:
                    raise click.UsageError("--dry-run measures one process; leave --dask out, and divide its times")
                if io.shard is not None:
                    raise click.UsageError("--shard and --dask exclude each other")
                from mlmglauber.commands.shared.spread.client import run_on_workers

                assert spread is not None
                run_on_workers(io, function, options, spread, address)
            else:
                try:
                    function(io, options)
                except MlmError:
                    io.conclude()  # if the input ended early, its error is the cause
                    raise
            io.report_counts()
            io.conclude()
    except ClosedPipeError:
        _silence(sys.stdout.fileno())
        return CLOSED_PIPE
    except TerminatedError as error:
        reporter.fail(error, "terminated")
        return 128 + error.number  # as a shell reports a death by this signal
    except KeyboardInterrupt as error:
        reporter.fail(error, "interrupted")
        return ExitStatus.INTERRUPTED
    except MlmError as error:
        reporter.fail(error, str(error))
        return error.status
    except OSError as error:
        reporter.fail(error, f"cannot write: {error.strerror or error}; free some space or choose another place")
        return ExitStatus.CANNOT_WRITE
    except click.UsageError:
        raise
    except Exception as error:  # an error that no part of the program expected
        reporter.fail(error, f"internal error: {type(error).__name__}: {error}; please run again with -v and report it")
        return ExitStatus.OUR_BUG
    if reporter.bad_records or reporter.nothing_found:
        return ExitStatus.BAD_RECORD
    return ExitStatus.FAILED if reporter.limit_exceeded else ExitStatus.OK


def _silence(descriptor: int) -> None:
    """Point a closed pipe at the null device, so that the interpreter can flush it at its end without an error."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
