"""The options of the native agent, from `agents.options` of a task. Unknown or wrong ones are refused."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib.util import find_spec

from coral.native.search.numeric.declarations import read_declarations

LIBRARIES = ("scipy", "cma")  # that a search needs; they are an extra


def missing_library() -> str:
    """The first of the libraries that is not installed; or nothing."""
    return next((library for library in LIBRARIES if find_spec(library) is None), "")


SEARCH = "search"
LLM = "llm"  # the brain that asks a model; its options are in `llm/settings.py`


def missing_llm_library() -> str:
    """What the brain `llm` needs and is not installed; or nothing."""
    return "" if find_spec("httpx2") else "httpx2"


def brain_of(data: object) -> str:
    """The brain that options name, whatever else is in them."""
    brain = data.get("brain", SEARCH) if isinstance(data, Mapping) else SEARCH
    return brain if isinstance(brain, str) else ""


@dataclass(frozen=True, slots=True)
class Options:
    """`seconds`: of an episode of search. `check_seconds`: of one call of the public check, before it counts as hung.

    `steps`: signals that one prompt may lead to. `variables`: what the values of names may be, as
    `search/numeric/declarations.py` reads it.
    """

    brain: str = SEARCH
    seconds: float = 5.0
    check_seconds: float = 10.0
    steps: int = 400
    variables: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, data: object) -> "Options":
        """ValueError says what is wrong."""
        if not isinstance(data, Mapping):
            raise ValueError("the options must be an object")
        known = {option.name for option in fields(cls)}
        unknown = sorted(str(name) for name in data if name not in known)
        if unknown:
            raise ValueError(f"there is no option {unknown[0]!r}; there are {', '.join(sorted(known))}")
        options = cls(**data)
        for name, low, high in (
            ("seconds", 0.05, 86_400.0),
            ("check_seconds", 0.05, 86_400.0),
            ("steps", 1, 1_000_000),
        ):
            value = getattr(options, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
                raise ValueError(f"{name} must be a number from {low:g} to {high:g}; got {value!r}")
        if not isinstance(options.brain, str):
            raise ValueError(f"brain must be a name; got {options.brain!r}")
        read_declarations(options.variables)
        return options
