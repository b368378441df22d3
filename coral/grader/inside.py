"""Runs in the process of a candidate: restricts itself, then calls a function of the candidate or becomes its program.

Python gets this module as a text, for the sandbox shows no file of Coral. The request comes on standard input,
marshalled, after a line with its size. The descriptor that it names gets a `+` once the process is sealed, then the
answer: a line of JSON and the bytes of its arrays.
"""

from __future__ import annotations

import marshal
import os
import resource
import sys

TYPE_CHECKING = False  # as in typing: each import here is paid by every candidate
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_NUMBERS = r"[<>|=]?[biufc]\d{1,2}"


def main() -> None:
    size = int(sys.stdin.buffer.readline())
    request = marshal.loads(sys.stdin.buffer.read(size))  # of the grader, which has this Python
    answer = os.fdopen(request["answer"], "wb")
    os.set_inheritable(request["answer"], False)
    landlock: dict[str, Any] = {}
    if request["landlock"] is not None:
        exec(request["landlock"]["code"], landlock)  # coral.grader.landlock, as a text like this one
        landlock["restrict"](request["landlock"]["view"], request["landlock"]["network"])
        landlock["refuse_calls"](bytes.fromhex(request["landlock"]["calls"]))
    answer.write(b"+")
    answer.flush()
    for name, most in request["limits"].items():
        number = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(number)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(number, (most, most))
    if request["argv"]:
        os.lseek(0, sys.stdin.buffer.tell(), os.SEEK_SET)  # its own input follows the request
        import _signal  # type: ignore[import-not-found]  # see coral.grader.landlock

        for number in (_signal.SIGPIPE, _signal.SIGXFSZ):  # Python ignores them, and a program would inherit that
            _signal.signal(number, _signal.SIG_DFL)
        os.execvp(request["argv"][0], request["argv"])
    arguments = [unpack(value, sys.stdin.buffer) for value in (request["args"], request["kwargs"])]
    value = _function(*request["entry"])(*arguments[0], **arguments[1])
    header, blocks = pack(value)
    answer.write("".join(_json(header)).encode() + b"\n")
    for block in blocks:
        answer.write(block)
    answer.close()
    sys.stdout.flush()
    os._exit(0)


def _function(path: str, name: str) -> Any:
    from importlib.machinery import ModuleSpec, SourceFileLoader

    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))  # noqa: PTH100, PTH120 - pathlib is slow to import
    module_name = os.path.splitext(os.path.basename(path))[0]  # noqa: PTH119, PTH122
    if not path.endswith(".py"):
        raise ImportError(f"{path} is not a Python file")
    # What importlib.util would make of it, without importing that.
    loader = SourceFileLoader(module_name, os.path.abspath(path))  # noqa: PTH100
    module = type(sys)(module_name)
    module.__spec__ = ModuleSpec(module_name, loader, origin=loader.path)
    module.__loader__, module.__file__ = loader, loader.path
    sys.modules[module_name] = module
    loader.exec_module(module)
    return getattr(module, name)


def _json(value: Any) -> Iterator[str]:
    """Yield the pieces of a value as JSON, without json, which takes as long to import as Python to start. TypeError
    for a value that JSON does not have."""
    from _json import encode_basestring_ascii as quoted

    if isinstance(value, str):
        yield quoted(value)
    elif value is None or isinstance(value, bool):
        yield {None: "null", True: "true", False: "false"}[value]
    elif isinstance(value, int):
        yield int.__repr__(value)
    elif isinstance(value, float):
        names = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}
        yield names.get(text := float.__repr__(value), text)
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield "," if number else "["
            yield from _json(inner)
        yield "]" if value else "[]"
    elif isinstance(value, dict):
        for number, (name, inner) in enumerate(value.items()):
            yield f"{',' if number else '{'}{quoted(name)}:"
            yield from _json(inner)
        yield "}" if value else "{}"
    else:
        raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def pack(value: Any) -> tuple[Any, list[bytes]]:
    """Return a value for JSON, in which each array of numpy is replaced by its type, shape and size, and the bytes of
    the arrays in that order."""
    blocks: list[bytes] = []

    def plain(value: Any) -> Any:
        if type(value).__module__ == "numpy":
            if getattr(value, "ndim", 0) == 0:
                return value.item()
            if value.dtype.hasobject:
                raise TypeError("an array of objects is no data")
            blocks.append(value.tobytes())
            return {"__array__": [value.dtype.str, list(value.shape), len(blocks[-1])]}
        if isinstance(value, dict):
            return {str(name): plain(inner) for name, inner in value.items()}
        if isinstance(value, list | tuple):
            return [plain(inner) for inner in value]
        return value

    return plain(value), blocks


def unpack(value: Any, source: Any) -> Any:
    """Return the value that `pack` was given; arrays are read from `source`. ValueError if one is not as described."""
    if isinstance(value, dict) and list(value) == ["__array__"]:
        return _array(value["__array__"], source)
    if isinstance(value, dict):
        return {name: unpack(inner, source) for name, inner in value.items()}
    if isinstance(value, list):
        return [unpack(inner, source) for inner in value]
    return value


def _array(described: Any, source: Any) -> Any:
    import re

    import numpy

    try:
        type_name, shape, size = described
        if not re.fullmatch(_NUMBERS, type_name):
            raise ValueError("its type is not one of numbers")
        kind = numpy.dtype(type_name)
        if any(type(length) is not int or length < 0 for length in (*shape, size)):
            raise ValueError("its shape is not one of numbers")
        count = 1
        for length in shape:
            count *= length
        if count * kind.itemsize != size:
            raise ValueError("it is no array of numbers")
        found = numpy.frombuffer(source.read(size), dtype=kind).reshape(shape).copy()
        if kind.kind == "b" and (found.view("u1") > 1).any():  # equal to True, and yet another value for many a reader
            raise ValueError("its truth values are other bytes than 0 and 1")
        return found
    except (TypeError, ValueError) as error:
        raise ValueError(f"an array cannot be read: {error}") from None


if __name__ == "__main__":
    main()
