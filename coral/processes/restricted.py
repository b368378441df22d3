"""The command line of `coral.grader.landlock`, which restricts itself and becomes a program."""

import marshal
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path

from coral.grader import landlock

_PLAIN = (0).to_bytes(4, "little")  # flags of compiled code that is compared by the time and size of its source


def restricted(rules: Mapping[str, object], argv: Sequence[str]) -> list[str]:
    """Return the arguments that start a program under `rules`, which are those of `coral.grader.sandbox`."""
    return [sys.executable, "-I", "-S", "-B", _script(), marshal.dumps(dict(rules)).hex(), *argv]


@cache
def _script() -> str:
    """Return the path of the script's compiled file if it is up to date, else of its source: Python compiles a script
    at each start, which takes an eighth of the whole."""
    source, compiled = Path(landlock.__file__), Path(cache_from_source(landlock.__file__))
    try:
        with compiled.open("rb") as file:
            found, status = file.read(16), source.stat()
    except OSError:
        return str(source)
    made_of = (int(status.st_mtime) & 0xFFFFFFFF, status.st_size & 0xFFFFFFFF)
    expected = MAGIC_NUMBER + _PLAIN + b"".join(number.to_bytes(4, "little") for number in made_of)
    return str(compiled if found == expected else source)
