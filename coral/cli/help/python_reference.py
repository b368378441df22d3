"""Makes the reference of `import coral` from the code: each name with its docstring, its fields and its methods."""

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cached_property

import coral

_MODULES = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z_])")  # before a name in an annotation


def python_reference() -> str:
    """Return an entry for every public name: first the functions, then the classes."""
    names = sorted(coral.__all__, key=lambda name: (name[0].isupper(), list(coral.__all__).index(name)))
    return "\n\n".join("\n".join(_entry(name, getattr(coral, name))) for name in names)


def _entry(name: str, found: object) -> Iterator[str]:
    if not isinstance(found, type):
        yield f"### coral.{name}{_signature(found)}\n"
        yield _text(found)
        return
    yield f"### coral.{name}\n"
    yield _text(found)
    if issubclass(found, Enum):
        yield "\nOne of " + ", ".join(f"`{member.value}`" for member in found) + "."
        return
    if is_dataclass(found):
        yield "\nFields: " + ", ".join(f"`{part.name}: {_type(part.type)}`" for part in fields(found)) + "."
    if rows := list(_members(found)):
        yield "\n| | type | |\n|---|---|---|"
        yield from (f"| `{what}` | {kind and f'`{kind}`'} | {text} |" for what, kind, text in rows)


def _members(found: type) -> Iterator[tuple[str, str, str]]:
    """Yield (name, type, docstring) for each property and method, also those of base classes of ours."""
    own = [base for base in found.__mro__ if base.__module__.split(".")[0] in ("coral", "attempts", "workspace")]
    members = {name: member for base in reversed(own) for name, member in vars(base).items()}
    for name, member in members.items():
        if name.startswith("_"):
            continue
        if isinstance(member, property | cached_property):
            getter = member.fget if isinstance(member, property) else member.func
            yield name, _type(inspect.signature(getter).return_annotation) if getter else "", _text(getter, line=True)
        elif inspect.isfunction(member):
            yield f"{name}{_signature(member)}", "", _text(member, line=True)


def _signature(function: object) -> str:
    signature = inspect.signature(function)  # type: ignore[arg-type]
    shown = signature.replace(parameters=[part for part in signature.parameters.values() if part.name != "self"])
    unquoted = re.sub(r"(: |-> )'([^']+)'", r"\1\2", str(shown))  # annotations are texts
    return _MODULES.sub("", unquoted).replace("|", "or")


def _type(annotation: object) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return _MODULES.sub("", text).replace("|", "or")


def _text(found: object, *, line: bool = False) -> str:
    own = vars(found).get("__doc__") if isinstance(found, type) else inspect.getdoc(found)  # none that is inherited
    text = inspect.cleandoc(own or "")
    return " ".join(text.split()).replace("|", "\\|") if line else text
