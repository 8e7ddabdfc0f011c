"""The table of mlm-sample --table: counts the states instead of writing them."""

from typing import Any

import numpy as np
import orjson

from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.table_output import write_tables
from mlmglauber.commands.shared.tables import Column, Table, count, number, share
from mlmglauber.measures.statistics.chain_summary import WrittenChain, summarise
from mlmglauber.stream.output import Output
from mlmglauber.stream.records import chain_key

CHAINS = Table("Chains by temperature and length", (
    Column("tau", "Temperature.", lambda row: number(row[0][0])),
    Column("n", "Tokens of a text.", lambda row: count(row[0][1])),
    Column("texts", "Number of texts.", lambda row: count(row[1])),
    Column("chains", "Number of chains.", lambda row: count(row[2].chains)),
    Column("steps", "Number of steps of every chain.", lambda row: count(row[2].steps)),
    Column("states", "States that would have been written: see --every and --on-change.",
           lambda row: count(row[2].states)),
    Column("moved", "Share of these, first ones left out, that differ from the one before.",
           lambda row: share(row[2].moved)),
    Column("unmoved chains", "Chains whose states were all the same.", lambda row: count(row[2].unmoved)),
    Column("sites changed", "Share of sites at which the last state differs from the first, mean over chains.",
           lambda row: share(row[2].distance)),
    Column("pll a token", "With --pll, pseudo-log-likelihood of the last states a token, nats, mean over chains.",
           lambda row: "" if row[2].pll is None else number(row[2].pll)),
))
TABLES = (CHAINS,)


class StateTally(Output):
    """An output that counts the states of a run instead of writing them; keeps two states a chain."""

    def __init__(self, output: Output) -> None:
        self.output, self.path = output, output.path
        self._chains: dict[Any, tuple[float, WrittenChain]] = {}

    def write_line(self, line: bytes) -> None:
        record = orjson.loads(line)
        if record.get("type") != "state":
            return
        key, ids = chain_key(record), np.array(record["ids"])
        if key not in self._chains:
            self._chains[key] = (record["tau"], WrittenChain(record["step"], ids))
        else:
            self._chains[key][1].take(record["step"], ids)
        if record.get("pll") is not None:
            self._chains[key][1].pll = record["pll"]

    def flush(self) -> None:
        pass

    def show(self, io: Filter, form: str) -> None:
        """Write the table to the output of the command."""
        io.output = self.output
        groups: dict[tuple[float, int], list[tuple[Any, WrittenChain]]] = {}
        for key, (tau, chain) in self._chains.items():
            groups.setdefault((tau, len(chain.last)), []).append((key, chain))
        rows = [(group, len({key[:2] for key, _ in members}), summarise([chain for _, chain in members]))
                for group, members in sorted(groups.items())]
        write_tables(io, form, [CHAINS.of(rows)])
