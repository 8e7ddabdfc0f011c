"""mlm-show --follow: rewrites the texts of chains in place, and answers keys."""

import os
import sys
import time

import click

from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.reporter import CollectingReporter
from mlmglauber.commands.show.frames import Frames, StateReader
from mlmglauber.commands.show.keys import Keys
from mlmglauber.commands.show.lines import Form, LineWriter, Place
from mlmglauber.commands.show.output import terminal_width
from mlmglauber.commands.show.panes import Panes

REDRAWN = 0.25
"""Seconds after which the screen is drawn again though nothing changed: its size may have, or others wrote on it."""


def follow(io: Filter, color: bool, fps: float) -> None:
    """Show the chains of the input in panes until q is pressed; without a keyboard until the input ends.

    Messages wait until the end, and then the last states are written as lines.
    """
    if os.environ.get("TERM", "dumb") == "dumb":
        raise click.UsageError("--follow moves the cursor, which TERM=dumb says this terminal cannot; leave it out")
    reporter, io.reporter = io.reporter, CollectingReporter(io.reporter.command, io.reporter.quiet)
    held = io.reporter
    try:
        panes = _play(io, color, fps)
    finally:
        io.reporter = reporter
        reporter.bad_records += held.bad_records
    descriptor = sys.stdout.fileno()
    writer = LineWriter(Form.TEXT, Place(True, color), lambda: terminal_width(descriptor))
    for state in panes.states:
        io.output.write_line(writer.on_terminal(state).encode())
    io.output.flush()
    for line in held.lines:
        reporter.relay(line)


def _play(io: Filter, color: bool, fps: float) -> Panes:
    """Show frames at this rate, and what the keys ask for."""
    from rich.console import Console
    from rich.live import Live

    console = Console(file=sys.stdout, no_color=not color, force_terminal=True, highlight=False, markup=False,
                      emoji=False)
    reader = StateReader(io)
    frames = Frames(reader.next)
    panes = Panes(color)
    paused = False
    due = drawn = 0.0
    with Keys() as keys, Live(console=console, screen=True, auto_refresh=False, redirect_stdout=False,
                              redirect_stderr=False) as live:
        while True:
            now = time.monotonic()
            states = []
            if not paused and now >= due:
                due = now + 1 / fps
                states = frames.forward()
                panes.take(states, *console.size)
                if reader.ended and not states and not keys.available:
                    return panes
            wait = 0.0 if states else min(drawn + REDRAWN, drawn + REDRAWN if paused else due) - now
            pressed = keys.read(max(0.0, wait))
            for key in pressed:
                if key == "end":
                    return panes
                paused = not paused if key == "pause" else True
                if key != "pause":
                    panes.take(frames.back() if key == "back" else frames.forward(), *console.size)
            if states or pressed or time.monotonic() >= drawn + REDRAWN:
                drawn = time.monotonic()
                mode = "paused" if paused else "end" if reader.ended else f"{fps:g}/s"
                status = [mode, "q end", "space play" if paused else "space pause", "arrows step",
                          f"frame {frames.place}"]
                live.update(panes.screen(*console.size, status), refresh=True)
