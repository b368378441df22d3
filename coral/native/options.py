"""The options of the native agent, from `agents.options` of a task. Unknown or wrong ones are refused."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec

from coral.native.option_fields import option, read_options

LIBRARIES = ("scipy", "cma")  # that a search needs; they are an extra


def missing_library() -> str:
    """Return the first of the libraries that is not installed; empty if all are."""
    return next((library for library in LIBRARIES if find_spec(library) is None), "")


SEARCH = "search"
LLM = "llm"  # the brain that asks a model; its options are in `llm/settings.py`


def brain_of(data: object) -> str:
    """Return the brain that options name, whatever else is in them; empty if that is no text."""
    brain = data.get("brain", SEARCH) if isinstance(data, Mapping) else SEARCH
    return brain if isinstance(brain, str) else ""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the brain `search`. `seconds`: the length of an agent's first episode of search. Later episodes
    are longer: up to twice as long, or 2.4 times if a descent needs the time. None is shorter than four measurements.
    `check_seconds`: how long one call of the public check may take.

    `steps`: signals that one prompt may lead to. `variables`: what the values of names may be, as
    `coral/search_space/declarations.py` reads it.
    """

    brain: str = option(SEARCH)
    seconds: float = option(5.0, least=0.05, most=86_400)
    check_seconds: float = option(10.0, least=0.05, most=86_400)
    steps: int = option(400, least=1, most=1_000_000)
    variables: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, data: object) -> "Options":
        """Read the options. ValueError says what is wrong."""
        from coral.search_space.declarations import read_declarations  # the other brain does without

        options = read_options(cls, data)
        read_declarations(options.variables)
        return options
