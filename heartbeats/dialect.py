"""The restricted template language of the prompts that agents and tasks write.

A template is parsed, and every node must be of an allowed kind. Nothing can be called, assigned, imported, repeated or
multiplied, so that no template can grow without end or reach the interpreter. Loops and filters use up fuel for what
they read, of which each rendering has a fixed amount.
"""

import math
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import cast

from jinja2 import StrictUndefined, Template, TemplateError, TemplateRuntimeError, nodes, pass_context
from jinja2.runtime import Context, Undefined

from heartbeats.plain import PlainEnvironment, joined, number, show

FUEL = 100_000
MAX_WORDS = 10_000  # words and signs inside the braces of a template; prompts have some dozens
_BRACES = re.compile(r"\{[{%].*?(?:[}%]\}|\Z)", re.DOTALL)
_WORD = re.compile(r"\w+|[^\w\s]")
# A key that no template can spell.
FUEL_KEY = " fuel"


class OutOfFuel(TemplateRuntimeError):  # noqa: N818
    """The template would have run for too long."""


class Fuel:
    """The fuel of one rendering: how many nodes it may still visit."""

    def __init__(self) -> None:
        self.left = FUEL

    def spend(self, amount: int) -> None:
        self.left -= amount
        if self.left < 0:
            raise OutOfFuel("it loops too long")


def _sized(context: Context, value: object) -> list[object] | str:
    """Return a text, or the items of a collection; the fuel for reading them is spent."""
    if isinstance(value, Undefined):
        list(value)
    fuel = cast(Fuel, context[FUEL_KEY])
    if isinstance(value, str):
        fuel.spend(1 + len(value) // 64)
        return value
    if not isinstance(value, list | tuple | dict):
        raise TypeError("a filter for lists and texts was given something else")
    fuel.spend(1 + len(value))
    return list(value)


def _part(item: object, attribute: str) -> object:
    return item[attribute] if attribute and isinstance(item, dict) else item


@pass_context
def loop(context: Context, value: object, weight: int) -> list[object]:
    """Return the items of a loop. The fuel for all passes is spent in advance: `weight` for each."""
    items = _sized(context, value)
    if isinstance(items, str):
        raise TypeError("a loop goes over a list, not over a text")
    cast(Fuel, context[FUEL_KEY]).spend(len(items) * weight)
    return items


def _of_items(function: Callable[[list[object] | str], object]) -> Callable[..., object]:
    @pass_context
    def filter_items(context: Context, value: object) -> object:
        return function(_sized(context, value))

    return filter_items


def _of_text(function: Callable[[str], str]) -> Callable[..., object]:
    @pass_context
    def filter_text(context: Context, value: object) -> str:
        return function(str(_sized(context, show(value))))

    return filter_text


def _at(index: int, name: str) -> Callable[..., object]:
    @pass_context
    def item_at(context: Context, value: object) -> object:
        items = _sized(context, value)
        return items[index] if items else context.environment.undefined(f"the {name} of nothing")

    return item_at


@pass_context
def _join(context: Context, value: object, separator: str = "", attribute: str = "") -> str:
    parts = (show(_part(item, attribute)) for item in _sized(context, value))
    return joined(parts, str(separator))


@pass_context
def _sort(context: Context, value: object, reverse: bool = False, attribute: str = "") -> list[object]:
    items = list(_sized(context, value))
    cast(Fuel, context[FUEL_KEY]).spend(10 * len(items))
    key = cast("Callable[[object], float]", lambda item: _part(item, attribute))
    return sorted(items, key=key, reverse=bool(reverse))


def _default(value: object, fallback: object = "", boolean: bool = False) -> object:
    missing = isinstance(value, Undefined) or value is None or (boolean and not value)
    return fallback if missing else value


def _round(value: object, digits: int = 0) -> float:
    if not isinstance(digits, int) or not 0 <= digits <= 15:
        raise ValueError("round takes from 0 to 15 digits")
    return round(number(value), digits)


FILTERS: dict[str, Callable[..., object]] = {
    "default": _default,
    "first": _at(0, "first"),
    "join": _join,
    "last": _at(-1, "last"),
    "length": _of_items(len),
    "list": _of_items(list),
    "lower": _of_text(str.lower),
    "round": _round,
    "sort": _sort,
    "title": _of_text(str.title),
    "trim": _of_text(str.strip),
    "upper": _of_text(str.upper),
}


DEEPEST = 40
MAX_LOOPS = 2
_LOOP = " loop"  # a filter that no template can spell

_TESTS = frozenset(
    {"boolean", "defined", "even", "false", "mapping", "none", "number", "odd", "sequence", "string", "true"}
    | {"undefined"}
)
_FORBIDDEN_NAMES = frozenset({"self", "super", "caller", "varargs", "kwargs"})
# By the names of Jinja's classes.
_ALLOWED = frozenset(
    {"Template", "TemplateData", "Output", "Name", "Const", "If", "For", "Getattr", "Getitem", "Slice", "Compare"}
    | {"Operand", "And", "Or", "Not", "Test", "Filter", "Add", "Sub", "Neg", "List", "Tuple", "Dict", "Pair"}
    | {"Keyword", "CondExpr"}
)
_STATEMENTS = {
    **{"Assign": "set", "AssignBlock": "set", "Macro": "macro", "CallBlock": "call", "FilterBlock": "filter"},
    **{"Include": "include", "Import": "import", "FromImport": "import", "Extends": "extends", "Block": "block"},
    "With": "with",
}
_OPERATORS = {"Concat": "~", "Mul": "*", "Pow": "**", "Div": "/", "FloorDiv": "//", "Mod": "%"}
_AS_WRITTEN = {"Call": "calls", **_OPERATORS, **{node: f"{{% {word} %}}" for node, word in _STATEMENTS.items()}}


class NotAllowed(Exception):  # noqa: N818 - a judgement on a template, not a failure
    """The template uses what prompts must not use. `problems`: line numbers, and what is wrong there."""

    def __init__(self, problems: list[tuple[int, str]]) -> None:
        line, message = problems[0]
        super().__init__(f"line {line}: {message}")
        self.problems = problems


class _Dialect(PlainEnvironment):
    """Allows `+` and `-` for numbers alone: texts and lists could grow by them without end."""

    intercepted_binops = frozenset({"+", "-"})
    intercepted_unops = frozenset({"-"})

    def call_binop(self, context: Context, operator: str, left: object, right: object) -> object:  # noqa: ARG002
        a, b = number(left), number(right)
        return number(a + b if operator == "+" else a - b)

    def call_unop(self, context: Context, operator: str, arg: object) -> object:  # noqa: ARG002
        return -number(arg)


def objections(template: nodes.Template) -> list[tuple[int, str]]:
    """Return what the template uses but must not: line numbers and reasons, in the order of the text."""
    problems = []
    for node, depth, loops in _walk(template):
        reason = _objection(node, loops)
        if depth > DEEPEST:
            reason = "it is nested too deeply"
        if reason:
            problems.append((node.lineno or 1, reason))
    return sorted(problems)


def parsed(source: str) -> nodes.Template:
    """Return the tree of a template. Raises as `compiled` does; also NotAllowed for a template that would take long to
    parse."""
    if sum(len(_WORD.findall(part)) for part in _BRACES.findall(source)) > MAX_WORDS:
        raise NotAllowed([(1, f"it has more than {MAX_WORDS:,} words and signs in its braces")])
    return ENVIRONMENT.parse(source)


def compiled(source: str) -> Template:
    """Return the template ready to run. Raises NotAllowed, TemplateSyntaxError, or whatever Python raises for absurd
    texts."""
    found = _compiled_or_refused(source)
    if isinstance(found, Template):
        return found
    raise found.with_traceback(None)  # the cached exception is raised again and again, and would keep each traceback


@lru_cache(maxsize=64)
def _compiled_or_refused(source: str) -> Template | Exception:
    try:
        return _compiled(source)
    except (NotAllowed, TemplateError) as refusal:
        return refusal


def _compiled(source: str) -> Template:
    tree = parsed(source)
    problems = objections(tree)
    if problems:
        raise NotAllowed(problems)
    for statement in list(tree.find_all(nodes.For)):
        weight = nodes.Const(_weight(statement))
        statement.iter = nodes.Filter(statement.iter, _LOOP, [weight], [], None, None).set_environment(ENVIRONMENT)
    return Template.from_code(ENVIRONMENT, ENVIRONMENT.compile(tree), {}, None)


def _walk(root: nodes.Node) -> Iterator[tuple[nodes.Node, int, int]]:
    """Yield every node with its depth and the number of loops around it; without recursion, because a template may be
    nested too deeply for it."""
    waiting = [(root, 0, 0)]
    while waiting:
        node, depth, loops = waiting.pop()
        loops += isinstance(node, nodes.For)
        yield node, depth, loops
        waiting.extend((child, depth + 1, loops) for child in node.iter_child_nodes())


def _objection(node: nodes.Node, loops: int) -> str:
    kind = type(node).__name__
    if kind not in _ALLOWED:
        return f"{_AS_WRITTEN.get(kind, kind.lower())} cannot be used in a prompt"
    match node:
        case nodes.For():
            if node.recursive or loops > MAX_LOOPS:
                return f"loops can be {MAX_LOOPS} deep and not recursive"
        case nodes.Name():
            if node.name in _FORBIDDEN_NAMES or node.name.startswith("_"):
                return f"the name {node.name[:40]} cannot be used in a prompt"
        case nodes.Const(value=int() | float() as value):
            if not abs(value) < 2**63 if isinstance(value, int) else not math.isfinite(value):
                return "a number is too large"
        case nodes.Test():
            if node.name not in _TESTS or node.args or node.kwargs:
                return f"the test {node.name[:40]} cannot be used in a prompt"
        case nodes.Filter():
            return _objection_to_filter(node)
    return ""


def _objection_to_filter(node: nodes.Filter) -> str:
    if node.name not in FILTERS:
        return f"the filter {node.name[:40]} cannot be used in a prompt; there are: {', '.join(FILTERS)}"
    if node.dyn_args or node.dyn_kwargs:
        return "* and ** cannot be used in a prompt"
    arguments = [*node.args, *(keyword.value for keyword in node.kwargs)]
    if node.name != "default" and not all(isinstance(argument, nodes.Const) for argument in arguments):
        return f"what the filter {node.name} is given must be written out"
    return ""


def _weight(node: nodes.Node) -> int:
    """Return the fuel that one pass through a loop uses up: comparisons and filters cost more, because they read whole
    texts and lists."""
    heavy = (nodes.Compare, nodes.Filter)
    return sum(10 if isinstance(part, heavy) else 1 for part, _, _ in _walk(node))


ENVIRONMENT = _Dialect(undefined=StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True, finalize=show)
ENVIRONMENT.globals.clear()
ENVIRONMENT.filters.clear()
ENVIRONMENT.filters.update({**FILTERS, _LOOP: loop})
