"""Small faults to plant in a module: each is an edit of its syntax tree that can be made and taken back.

A test that still passes with one of them in place says nothing about that line.
"""

import ast
import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

SHIFTED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
EXCHANGED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
}


@dataclass(frozen=True)
class Mutation:
    """`function`: the lines of the function it lies in, or none at the top of the module."""

    kind: str
    line: int
    function: range | None
    statement: ast.stmt
    make: Callable[[], Callable[[], None]]

    def shown(self) -> str:
        """Return what it changes, as a diff of the statement it lies in."""
        before = ast.unparse(self.statement).splitlines()
        undo = self.make()
        after = ast.unparse(ast.fix_missing_locations(self.statement)).splitlines()
        undo()
        lines = list(difflib.unified_diff(before, after, lineterm="", n=0))[3:] or [f"-{before[0]}"]
        return "\n".join(f"    {line}" for line in lines)


def mutations_of(tree: ast.Module) -> Iterator[Mutation]:
    """Yield every fault that can be planted in a module."""
    yield from _Finder().of_block(tree.body)


class _Finder:
    """Walks statements with the function they belong to. Annotations, decorators and docstrings are left out."""

    def __init__(self) -> None:
        self.function: range | None = None
        self.statement: ast.stmt = ast.Pass()

    def of_block(self, block: list[ast.stmt]) -> Iterator[Mutation]:
        for place, statement in enumerate(block):
            outer, self.statement = self.statement, statement
            yield from self.of_statement(block, place, statement)
            self.statement = outer

    def of_statement(  # noqa: C901 - one arm per kind of statement
        self, block: list[ast.stmt], place: int, statement: ast.stmt
    ) -> Iterator[Mutation]:
        match statement:
            case ast.FunctionDef():
                yield from self.of_function(statement)
            case ast.ClassDef():
                yield from self.of_block(statement.body)
            case ast.Expr(value=ast.Constant()):
                return
            case _ if _never(statement):
                return
            case ast.Expr(value=ast.Call()) | ast.Assign() | ast.AugAssign() | ast.Delete() if self.function:
                yield self.swap("dropped statement", statement, block, place, _pass(statement))
                yield from self.of_expressions(statement)
            case ast.AnnAssign(value=ast.expr()):
                yield from self.of_expression(statement.value)
            case ast.If() | ast.While():
                yield self.replace("negated condition", statement, "test", _negated(statement.test))
                yield from self.of_expression(statement.test)
                yield from self.of_block(statement.body)
                yield from self.of_block(statement.orelse)
            case ast.For():
                nothing = ast.copy_location(ast.Tuple(elts=[], ctx=ast.Load()), statement.iter)
                yield self.replace("no iteration", statement, "iter", nothing)
                yield from self.of_expression(statement.iter)
                yield from self.of_block(statement.body)
            case ast.Match():
                for case in statement.cases:
                    if not isinstance(case.body[0], ast.Pass) and not _never(case.body[0]):
                        yield self.replace("empty case", case, "body", [_pass(case.body[0])], case.body[0].lineno)
                    if case.guard is not None:
                        yield self.replace("negated guard", case, "guard", _negated(case.guard), case.guard.lineno)
                        yield from self.of_expression(case.guard)
                    yield from self.of_block(case.body)
            case ast.Try():
                for body in (statement.body, *[handler.body for handler in statement.handlers], statement.orelse):
                    yield from self.of_block(body)
            case _:
                yield from self.of_expressions(statement)

    def of_function(self, function: ast.FunctionDef) -> Iterator[Mutation]:
        outer = self.function
        self.function = range(function.lineno, (function.end_lineno or function.lineno) + 1)
        for default in (
            *function.args.defaults,
            *[kw_default for kw_default in function.args.kw_defaults if kw_default],
        ):
            yield from self.of_expression(default)
        body = function.body
        first = 1 if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) else 0
        for place in range(first, len(body)):
            if not isinstance(body[place], ast.Return | ast.Pass):
                early = ast.copy_location(ast.Return(value=None), body[place])
                self.statement = body[place]
                yield self.swap("early return", body[place], body, place, early)
        yield from self.of_block(body)
        self.function = outer

    def of_expressions(self, statement: ast.AST) -> Iterator[Mutation]:
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, ast.expr):
                yield from self.of_expression(child)

    def of_expression(self, node: ast.AST) -> Iterator[Mutation]:  # noqa: C901 - one arm per kind of expression
        match node:
            case ast.Compare(ops=[operator]):
                for other in SHIFTED[type(operator)]:
                    yield self.replace(f"{type(operator).__name__} to {other.__name__}", node, "ops", [other()])
            case ast.BoolOp(op=operator):
                other_op = ast.Or() if isinstance(operator, ast.And) else ast.And()
                yield self.replace("and/or", node, "op", other_op)
            case ast.UnaryOp(op=ast.Not()):
                yield self.replace("not not", node, "operand", _negated(node.operand))
            case ast.UnaryOp(op=ast.USub()):
                yield self.replace("sign", node, "op", ast.UAdd())
            case ast.BinOp(op=operator) if type(operator) in EXCHANGED:
                yield self.replace("arithmetic", node, "op", EXCHANGED[type(operator)]())
            case ast.Constant(value=bool() as value):
                yield self.replace("constant", node, "value", not value)
            case ast.Constant(value=int() | float() as value):
                yield self.replace("constant + 1", node, "value", value + 1)
                yield self.replace("constant - 1", node, "value", value - 1)
            case ast.IfExp():
                yield self.replace("negated condition", node, "test", _negated(node.test))
            case ast.comprehension():
                for place, condition in enumerate(node.ifs):
                    yield self.swap("negated filter", condition, node.ifs, place, _negated(condition))
            case ast.Call(keywords=keywords):
                for place, keyword in enumerate(keywords):
                    fewer = keywords[:place] + keywords[place + 1 :]
                    yield self.replace("dropped argument", node, "keywords", fewer, keyword.lineno)
        for child in ast.iter_child_nodes(node):
            yield from self.of_expression(child)

    def replace(self, kind: str, node: ast.AST, field: str, value: object, line: int = 0) -> Mutation:
        def make() -> Callable[[], None]:
            before = getattr(node, field)
            setattr(node, field, value)
            return lambda: setattr(node, field, before)

        return Mutation(
            kind, line or getattr(node, "lineno", self.statement.lineno), self.function, self.statement, make
        )

    def swap(self, kind: str, at: ast.stmt | ast.expr, block: list, place: int, node: ast.AST) -> Mutation:
        def make() -> Callable[[], None]:
            before = block[place]
            block[place] = node

            def undo() -> None:
                block[place] = before

            return undo

        return Mutation(kind, at.lineno, self.function, self.statement, make)


def _negated(node: ast.expr) -> ast.expr:
    return ast.copy_location(ast.UnaryOp(op=ast.Not(), operand=node), node)


def _never(statement: ast.stmt) -> bool:
    """Return whether a statement is read by a type checker alone."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "assert_never"


def _pass(at: ast.stmt) -> ast.stmt:
    return ast.copy_location(ast.Pass(), at)
