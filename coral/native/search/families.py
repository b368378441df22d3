"""The families of moves: the different ways in which the brain `search` looks for something better.

A family says what it needs of the files. Which family gains most on a problem is not known beforehand: `bandit.py`
counts, and `choose_family.py` chooses.
"""

import re
from dataclasses import KW_ONLY, dataclass

from coral.native.search.numeric import moves
from coral.native.search.numeric.moves import Move
from coral.search_space.space import SearchSpace

FEWEST_DISCRETE = 4
LOCAL, EVOLUTION, TABU, ANNEAL = "local", "evolution", "tabu", "anneal"
SCATTER = "scatter"  # the local family that begins anywhere
FIRST = ("descent", EVOLUTION, ANNEAL, TABU)  # one of each kind, with which a search begins


@dataclass(frozen=True, slots=True)
class Family:
    """A family. `move`: changes a point, and a local search follows. A family without a move is a search of its
    own, which needs the public check. `kind`: if one family of a kind gains on a problem, the others of the kind are
    likely to gain as well."""

    name: str
    prior: float  # expected wins in four tries, while nothing is known of it
    about: str  # how notes describe it, after "it"
    move: Move | None = None
    _: KW_ONLY
    kind: str = LOCAL
    reals: int = 0  # the fewest that it needs
    discrete: int = 0  # the fewest integers, choices and ordered values
    columns: int = 0  # the fewest of a table with three rows or more
    others: bool = False  # whether it needs attempts of other agents

    def suits(self, space: SearchSpace, *, others: bool, check: bool) -> bool:
        columns = max((len(table[0]) for table in space.tables if len(table) > 2), default=0)
        if columns < self.columns or (self.others and not others) or not (self.move or check):
            return False
        return len(space.reals) >= self.reals and len(space.discrete) >= self.discrete


_ALL = (
    Family("descent", 1.6, "follows the gradient of the public check to the nearest optimum", reals=1),
    Family("rows", 3.4, "draws rows of a table anew and adapts everything else to them", moves.redraw_rows, columns=1),
    Family("shake", 2.0, "moves every number a little, then searches locally", moves.perturb_all),
    Family("jump", 2.4, "moves one to three numbers far, then searches locally", moves.redraw_few),
    Family("cross", 2.0, "joins the present candidate with a part of another agent's", moves.cross, others=True),
    Family(SCATTER, 0.8, "begins anywhere, and moves on from there while that gains", moves.restart),
    Family("compass", 0.8, "moves one number or choice at a time, with a step that adapts"),
    Family(TABU, 3.2, "walks to the best neighbour that it has not just left", kind=TABU, discrete=FEWEST_DISCRETE),
    Family(ANNEAL, 2.8, "accepts losses, fewer and fewer of them", kind=ANNEAL, discrete=FEWEST_DISCRETE),
    Family(EVOLUTION, 0.8, "samples around the best with a spread that adapts", kind=EVOLUTION, reals=2),
)

FAMILIES = {family.name: family for family in _ALL}
KINDS = {family.name: family.kind for family in _ALL}
_TITLE = re.compile(r"(?P<family>[a-z]+) from #(?P<start>\d{1,9})\b")


def suitable_families(space: SearchSpace, *, others: bool, check: bool) -> list[str]:
    """Return the families for these files. Where no variable is real, tabu search and annealing do best what the local
    families do as well."""
    suitable = [family for family in _ALL if family.suits(space, others=others, check=check)]
    best = [family for family in suitable if family.kind != LOCAL] if not space.reals else []
    return [family.name for family in best or suitable]


def hops(space: SearchSpace) -> list[Family]:
    """Return the families whose move leads from a local optimum to one nearby."""
    near = [family for family in _ALL if family.move is not None and family.name != SCATTER]
    return [family for family in near if family.suits(space, others=False, check=True)]


def format_title(family: str, start: int | None) -> str:
    """Return the title of an attempt, which `parse_title` of other agents reads. `start`: None for the files as they
    are."""
    return f"{family} from " + (f"#{start}" if start is not None else "the files")


def parse_title(title: str) -> tuple[str, int]:
    """Return the family and the start that a title names; empty and -1 if it is no such title."""
    found = _TITLE.match(title)
    return (found["family"], int(found["start"])) if found and found["family"] in FAMILIES else ("", -1)
