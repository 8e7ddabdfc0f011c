"""The table of mlm-sample --table: counts the states instead of writing them."""

from typing import Any

import numpy as np
import orjson

from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.table_output import write_tables
from mlmglauber.commands.shared.tables import Column, Table, count, name, number, share
from mlmglauber.measures.statistics.chain_summary import WrittenChain, summarise
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.output import Output
from mlmglauber.stream.records import Record, chain_key, tokens_of_pll

CHAINS = Table("Chains by temperature and length", (
    Column("tau", "Temperature; a dash where it changes by a schedule.", lambda row: number(row[0][0])),
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
RUN = Column("run", "Run of mlm-sample or mlm-couple that made the chains.", lambda row: name(row[3] and str(row[3])))


class WrittenChains:
    """Counts the states of chains; keeps two states a chain."""

    def __init__(self) -> None:
        self._chains: dict[Any, tuple[float | None, WrittenChain]] = {}

    def take(self, record: Record) -> None:
        """Take the next state of a chain; RecordError where its length is not that of the chain."""
        key, ids = chain_key(record), np.array(record["ids"])
        if key not in self._chains:
            self._chains[key] = (record.get("tau"), WrittenChain(record["step"], ids))
        elif len(ids) != len(self._chains[key][1].last):
            raise RecordError(f"earlier states of this chain have {len(self._chains[key][1].last)} tokens; make "
                              "run/id/chain unique")
        else:
            tau, chain = self._chains[key]
            chain.take(record["step"], ids)
            if record.get("tau") != tau:
                self._chains[key] = None, chain
        if record.get("pll") is not None and (tokens := tokens_of_pll(record)):
            self._chains[key][1].pll = record["pll"] / tokens

    def table(self, by_run: bool = False) -> Table:
        """A row for each temperature and length; by_run: for those of each run, in the order of the input."""
        groups: dict[tuple[Any, float | None, int], list[tuple[Any, WrittenChain]]] = {}
        for key, (tau, chain) in self._chains.items():
            groups.setdefault((key[0] if by_run else None, tau, len(chain.last)), []).append((key, chain))
        rows = [(group[1:], len({key[:2] for key, _ in members}), summarise([chain for _, chain in members]), group[0])
                for group, members in (groups.items() if by_run else sorted(groups.items(), key=_place))]
        return (CHAINS._replace(columns=(RUN, *CHAINS.columns)) if by_run else CHAINS).of(rows)


def _place(item: tuple[tuple[Any, float | None, int], Any]) -> tuple[bool, float, int]:
    """What rows are sorted by: temperature and length."""
    _, tau, n = item[0]
    return tau is None, tau or 0.0, n


class StateTally(Output):
    """An output that counts the states of a run instead of writing them; keeps two states a chain."""

    def __init__(self, output: Output) -> None:
        self.output, self.path = output, output.path
        self._chains = WrittenChains()

    def write_line(self, line: bytes) -> None:
        record = orjson.loads(line)
        if record.get("type") == "state":
            self._chains.take(record)

    def flush(self) -> None:
        pass

    def show(self, io: Filter, form: str) -> None:
        """Write the table to the output of the command."""
        io.output = self.output
        write_tables(io, form, [self._chains.table()])
