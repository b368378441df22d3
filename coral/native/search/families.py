"""Families of moves: the different ways in which the search brain looks for something better.

A family says what it needs of a problem. Which family pays is not known beforehand: credit decides (`credit.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from coral.native.search.numeric import moves
from coral.native.search.numeric.moves import Move
from coral.native.search.numeric.space import Space


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """`move` leaves the present point and is followed by a local search; without one the local search is all."""

    name: str
    about: str  # how notes name it
    move: Move | None = None
    suits: Callable[[Space], bool] = lambda space: len(space) > 0
    needs_others: bool = False
    needs_check: bool = False


def _has_reals(space: Space) -> bool:
    return bool(space.reals)


def _has_tables(space: Space) -> bool:
    return any(len(table) > 2 for table in space.tables)


def _has_wide_tables(space: Space) -> bool:
    return any(len(table) > 2 and len(table[0]) > 1 for table in space.tables)


_ALL = (
    Family(
        name="descent",
        about="follows the slopes of the public check, within its constraints, to the nearest optimum",
        suits=_has_reals,
        needs_check=True,
    ),
    Family(
        name="rows",
        about="draws one or two rows of a table anew and lets everything else give way",
        move=moves.restart_rows,
        suits=_has_tables,
    ),
    Family(name="shake", about="moves every number a little, then settles again", move=moves.shake),
    Family(name="jump", about="moves one to three numbers far, then settles again", move=moves.nudge_few),
    Family(
        name="swap",
        about="exchanges some values of two rows of a table, then settles again",
        move=moves.swap_values,
        suits=_has_wide_tables,
    ),
    Family(
        name="cross",
        about="joins a part of the present candidate with a part of another agent's",
        move=moves.cross,
        needs_others=True,
    ),
    Family(name="scatter", about="begins anywhere, forgetting the present candidate", move=moves.scatter),
    Family(
        name="compass",
        about="moves one number or choice at a time, with a step that adapts",
        needs_check=True,
    ),
    Family(
        name="evolution",
        about="samples around the best with a spread that adapts, asking for no smoothness",
        suits=lambda space: len(space) - len(space.others) > 1,
        needs_check=True,
    ),
)

FAMILIES = {family.name: family for family in _ALL}


def suitable(space: Space, *, others: bool, check: bool) -> list[str]:
    """The names of the families that can do something here."""
    return [
        family.name
        for family in _ALL
        if family.suits(space) and (others or not family.needs_others) and (check or not family.needs_check)
    ]
