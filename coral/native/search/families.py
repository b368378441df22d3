"""The families of moves: the different ways in which the brain `search` looks for something better.

A family says what it needs of the files. Which family gains most on a problem is not known beforehand: `bandit.py`
counts, and `choose_family.py` chooses.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from coral.native.search.numeric import moves
from coral.native.search.numeric.moves import Move
from coral.native.search.numeric.space import SearchSpace

# Families that are left out where no variable is real: tabu search and annealing do the same better there.
_FOR_REALS = {"rows", "shake", "jump", "swap", "scatter", "compass", "cross"}
FEWEST_DISCRETE = 4
LOCAL, EVOLUTION, TABU, ANNEAL = "local", "evolution", "tabu", "anneal"
FIRST = ("descent", EVOLUTION, ANNEAL, TABU)  # one of each kind, with which a search begins


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A family. `move`: leaves the current point, and a local search follows; without a move there is the local search
    alone. `kind`: if one family of a kind gains on a problem, the others of the kind are likely to gain as well."""

    name: str
    about: str  # how notes describe it, after "it"
    move: Move | None = None
    suits: Callable[[SearchSpace], bool] = lambda space: len(space) > 0
    needs_others: bool = False  # attempts of other agents
    needs_check: bool = False
    kind: str = LOCAL


def _has_tables(space: SearchSpace) -> bool:
    return any(len(table) > 2 for table in space.tables)


def _has_wide_tables(space: SearchSpace) -> bool:
    return any(len(table) > 2 and len(table[0]) > 1 for table in space.tables)


def _has_much_discrete(space: SearchSpace) -> bool:
    return len(space.discrete) >= FEWEST_DISCRETE


_ALL = (
    Family(
        name="descent",
        about="follows the gradient of the public check, within its constraints, to the nearest optimum",
        suits=lambda space: bool(space.reals),
        needs_check=True,
    ),
    Family(
        name="rows",
        about="draws one or two rows of a table anew and adapts everything else to them",
        move=moves.redraw_rows,
        suits=_has_tables,
    ),
    Family(name="shake", about="moves every number a little, then searches locally", move=moves.perturb_all),
    Family(name="jump", about="moves one to three numbers far, then searches locally", move=moves.redraw_few),
    Family(
        name="swap",
        about="exchanges some values of two rows of a table, then searches locally",
        move=moves.swap_values,
        suits=_has_wide_tables,
    ),
    Family(
        name="cross",
        about="joins a part of the present candidate with a part of another agent's",
        move=moves.cross,
        needs_others=True,
    ),
    Family(name="scatter", about="begins anywhere, forgetting the present candidate", move=moves.restart),
    Family(name="compass", about="moves one number or choice at a time, with a step that adapts", needs_check=True),
    Family(
        name=TABU,
        kind=TABU,
        about="walks over integers, choices and orders to the best neighbour that it has not just left",
        suits=_has_much_discrete,
        needs_check=True,
    ),
    Family(
        name=ANNEAL,
        kind=ANNEAL,
        about="changes integers, choices and orders by chance and accepts losses, fewer and fewer of them",
        suits=_has_much_discrete,
        needs_check=True,
    ),
    Family(
        name=EVOLUTION,
        kind=EVOLUTION,
        about="samples around the best with a spread that adapts, asking for no smoothness",
        suits=lambda space: len(space.reals) > 1,
        needs_check=True,
    ),
)

FAMILIES = {family.name: family for family in _ALL}
_TITLE = re.compile(r"(?P<family>[a-z]+) from #(?P<start>\d{1,9})\b")


def suitable_families(space: SearchSpace, *, others: bool, check: bool) -> list[str]:
    discrete = check and not space.reals and _has_much_discrete(space)
    return [
        family.name
        for family in _ALL
        if family.suits(space)
        and (others or not family.needs_others)
        and (check or not family.needs_check)
        and not (discrete and family.name in _FOR_REALS)
    ]


def format_title(family: str, start: int | None) -> str:
    """Return the title of an attempt, which `parse_title` of other agents reads. `start`: None for the files as they
    are."""
    return f"{family} from " + (f"#{start}" if start is not None else "the files")


def parse_title(title: str) -> tuple[str, int]:
    """Return the family and the start that a title names; empty and -1 if it is no such title."""
    found = _TITLE.match(title)
    return (found["family"], int(found["start"])) if found and found["family"] in FAMILIES else ("", -1)
