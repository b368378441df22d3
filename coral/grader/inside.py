"""Runs in the process of a candidate: restricts itself, then calls a function of the candidate or becomes its program.

Given to Python as a text, for the sandbox has no file of ours. The request is JSON on standard input; the answer, and
before it a sign that the sandbox has begun, goes to the descriptor that the request names.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import sys

TYPE_CHECKING = False  # as in typing: each import here is paid by every candidate
if TYPE_CHECKING:
    from typing import Any

_NUMBERS = re.compile(r"[<>|=]?[biufc]\d{1,2}")


def main() -> None:
    request = json.loads(sys.stdin.buffer.readline())
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
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and a program would inherit that
            signal.signal(number, signal.SIG_DFL)
        os.execvp(request["argv"][0], request["argv"])
    arguments = [unpack(value, sys.stdin.buffer) for value in (request["args"], request["kwargs"])]
    value = _function(*request["entry"])(*arguments[0], **arguments[1])
    header, blocks = pack(value)
    answer.write(json.dumps(header).encode() + b"\n")
    for block in blocks:
        answer.write(block)
    answer.close()
    sys.stdout.flush()
    os._exit(0)


def _function(path: str, name: str) -> Any:
    import importlib.util

    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))  # noqa: PTH100, PTH120 - pathlib is slow to import
    module_name = os.path.splitext(os.path.basename(path))[0]  # noqa: PTH119, PTH122
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    spec.loader.exec_module(module)
    return getattr(module, name)


def pack(value: Any) -> tuple[Any, list[bytes]]:
    """A value as JSON, with each array of numpy as its type, shape and place, and the bytes of the arrays."""
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
    """The value again, its arrays read from `source` in their order. ValueError where they are not what they say."""
    if isinstance(value, dict) and list(value) == ["__array__"]:
        return _array(value["__array__"], source)
    if isinstance(value, dict):
        return {name: unpack(inner, source) for name, inner in value.items()}
    if isinstance(value, list):
        return [unpack(inner, source) for inner in value]
    return value


def _array(described: Any, source: Any) -> Any:
    import numpy

    try:
        type_name, shape, size = described
        if not _NUMBERS.fullmatch(type_name):
            raise ValueError("its type is not one of numbers")
        kind = numpy.dtype(type_name)
        if any(type(length) is not int or length < 0 for length in (*shape, size)):
            raise ValueError("its shape is not one of numbers")
        count = 1
        for length in shape:
            count *= length
        if count * kind.itemsize != size:
            raise ValueError("it is no array of numbers")
        data = source.read(size)
        return numpy.frombuffer(data, dtype=kind).reshape(shape).copy()
    except (TypeError, ValueError) as error:
        raise ValueError(f"an array cannot be read: {error}") from None


if __name__ == "__main__":
    main()
