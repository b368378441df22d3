"""No sentence decides anything: what people read may be reworded, and nothing is done otherwise for it."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Runtimes and preflight read the words of other programs; views compare what they show with what they have shown.
EXCEPT = ("runtimes", "preflight", "views")
FILES = sorted(path for path in (ROOT / "coral").rglob("*.py") if path.relative_to(ROOT).parts[1] not in EXCEPT)

# Fields that hold sentences, or a reason that is made one, and the methods by which a text is looked into.
_TEXTS = "reason why how text detail hint message feedback suspicion error closed refused"
_SEARCHES = "startswith endswith find index count removeprefix removesuffix partition rpartition"
TEXTS, SEARCHES = frozenset(_TEXTS.split()), frozenset(_SEARCHES.split())
NAMES = frozenset(["reason", "why", "how", "detail", "hint"])  # of variables; others mean other things as well
PATTERNS = frozenset(["match", "fullmatch", "search", "findall", "finditer"])


def prose_compared(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The line and the source of each operand that is a text and is compared."""
    for node in ast.walk(tree):
        for operand in _operands(node):
            if _is_text(operand):
                yield operand.lineno, ast.unparse(node)


def _operands(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.Compare(left=left, ops=ops, comparators=others):
            compares = any(isinstance(op, ast.Eq | ast.NotEq | ast.In | ast.NotIn) for op in ops)
            return [left, *others] if compares else []
        case ast.Match(subject=looked_up) | ast.Subscript(slice=looked_up):
            return [looked_up]
        case ast.Call(func=ast.Attribute(value=value, attr=attr), args=given):
            return [value] if attr in SEARCHES else given if attr in PATTERNS else []
    return []


def _is_text(node: ast.expr) -> bool:
    match node:
        case ast.Name(id=name):
            return name in NAMES
        case ast.Attribute(attr=name):
            return name in TEXTS
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return name in TEXTS
        case ast.Call(func=ast.Attribute(attr="text" | "get"), args=[ast.Constant(value=str(name)), *_]):
            return name in TEXTS
        case ast.Call(func=ast.Name(id="str"), args=[inner]):
            return _is_text(inner)
        case ast.BoolOp(values=values):
            return any(map(_is_text, values))
    return False


def test_no_comparison_has_a_sentence_as_an_operand() -> None:
    compared = {path: list(prose_compared(ast.parse(path.read_text(encoding="utf-8")))) for path in FILES}
    assert {path.relative_to(ROOT).as_posix(): found for path, found in compared.items() if found} == {}
