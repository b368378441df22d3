"""From a template to the text an agent reads.

Prompts of agents and tasks are written in the restricted dialect. Whatever is wrong with one, something reaches the
agent: what cannot be rendered is sent as it was written, under a line that says why; never nothing, never an error.
"""

import contextlib
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path

from jinja2 import FileSystemLoader, StrictUndefined, TemplateError, TemplateSyntaxError, UndefinedError, nodes
from jinja2.bccache import Bucket, FileSystemBytecodeCache

from attempts.fields import one_line, printable
from heartbeats.dialect import ENVIRONMENT, NotAllowed, check, compiled
from heartbeats.example import CONTEXT_NAMES as CONTEXT_NAMES
from heartbeats.example import example_context as example_context
from heartbeats.filters import FUEL_KEY, Fuel
from heartbeats.heartbeat import PROMPT_BYTES, is_blank
from heartbeats.plain import OUTPUT_BYTES, Copy, PlainEnvironment, show

PROMPTS = Path(__file__).parent / "prompts"
# All that parsing, compiling and running a hostile text can raise. TemplateError covers what Jinja itself detects.
_FAILURES = (
    TemplateError,
    NotAllowed,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    NameError,
    RecursionError,
    SyntaxError,
    TypeError,
    ValueError,
)
_HEADING = re.compile(r"^(?=[ \t]*##[ \t]*Heartbeat:)", re.MULTILINE | re.IGNORECASE)
_GAPS = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True)
class Rendered:
    """What the agent is sent, and for the operator why that is not what the template was meant to give."""

    text: str
    warning: str = ""


def render(template: str, context: Mapping[str, object]) -> Rendered:
    """Render a prompt that anybody may have written. Never raises, never gives a text without words."""
    source = template.encode("utf-8", "replace")
    if len(source) > PROMPT_BYTES:
        return _raw(template[: PROMPT_BYTES // 4], f"it is longer than {PROMPT_BYTES} bytes and was cut")
    try:
        text = _run(source.decode(), context)
    except _FAILURES as failure:
        return _raw(template, _reason(failure))
    if is_blank(text):
        return _raw(template, "nothing is left of it once rendered")
    if len(text) > OUTPUT_BYTES:
        return Rendered(text[:OUTPUT_BYTES] + "\n(cut here: too long)", f"it is longer than {OUTPUT_BYTES} characters")
    return Rendered(text)


def render_file(name: str, context: Mapping[str, object]) -> str:
    """Render a template that we ship, by its name: `reflect`. What goes wrong here is our mistake, and raises."""
    text = _shipped().get_template(f"{name}.md.j2").render(context)
    return _GAPS.sub("\n\n", printable(text)).strip() + "\n"


def problems(template: str) -> list[str]:
    """What is wrong with a prompt, with line numbers, before anything was spent on it."""
    if len(template.encode("utf-8", "replace")) > PROMPT_BYTES:
        return [f"it is longer than {PROMPT_BYTES} bytes"]
    try:
        tree = ENVIRONMENT.parse(template)
        found = sorted({*check(tree), *_unknown_names(tree)})
        if found:
            return [f"line {line}: {what}" for line, what in found]
        text = _run(template, example_context())
    except _FAILURES as failure:
        return [_reason(failure)]
    return ["it says nothing once rendered"] if is_blank(text) else []


def _run(source: str, context: Mapping[str, object]) -> str:
    """Render in pieces, so that a text without end is stopped while it grows."""
    plain = Copy().of(context)
    assert isinstance(plain, dict)
    pieces: list[str] = []
    length = 0
    for piece in compiled(source).generate({**plain, FUEL_KEY: Fuel()}):
        pieces.append(piece)
        length += len(piece)
        if length > OUTPUT_BYTES:
            break
    return printable("".join(pieces)).strip()


def _raw(template: str, reason: str) -> Rendered:
    warning = one_line(reason, 300)
    body = printable(template).strip()
    if is_blank(body):
        body = "Look at what you tried last: say what it showed, then go on with your next attempt."
    return Rendered(f"(This prompt could not be rendered and follows as it was written: {warning}.)\n\n{body}", warning)


def _reason(failure: BaseException) -> str:
    match failure:
        case TemplateSyntaxError():
            return f"line {failure.lineno}: {failure.message}"
        case NotAllowed():
            return str(failure)
        case RecursionError() | MemoryError():
            return "it is nested too deeply"
    lines = [line for frame, line in traceback.walk_tb(failure.__traceback__) if _is_template(frame.f_code.co_filename)]
    place = f"line {lines[-1]}: " if lines else ""
    unknown = isinstance(failure, UndefinedError)
    return f"{place}{failure}" if unknown or str(failure) else f"{place}{type(failure).__name__}"


def _is_template(filename: str) -> bool:
    return filename in ("<template>", "<unknown>")


def _unknown_names(tree: nodes.Template) -> set[tuple[int, str]]:
    names = list(tree.find_all(nodes.Name))
    own = {name.name for name in names if name.ctx == "store"} | {"loop"}
    known = CONTEXT_NAMES | own
    return {
        (name.lineno, f"there is no name {name.name[:40]}; there are: {', '.join(sorted(CONTEXT_NAMES))}")
        for name in names
        if name.name not in known
    }


# The templates that we ship. They may use all of Jinja, and these filters.


class _Compiled(FileSystemBytecodeCache):
    """Keeps compiled templates where Python keeps compiled modules: to compile those of a first prompt takes 30 ms."""

    def __init__(self) -> None:
        self._folder = Path(cache_from_source(str(PROMPTS / "template.py"))).parent
        super().__init__(str(self._folder))

    def load_bytecode(self, bucket: Bucket) -> None:
        with contextlib.suppress(OSError):
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        if sys.dont_write_bytecode:
            return
        with contextlib.suppress(OSError):  # the package may be installed where its user may not write
            self._folder.mkdir(parents=True, exist_ok=True)
            super().dump_bytecode(bucket)


@cache
def _shipped() -> PlainEnvironment:
    environment = PlainEnvironment(
        loader=FileSystemLoader(PROMPTS),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        bytecode_cache=_Compiled(),
        finalize=show,
    )
    ours: dict[str, Callable[..., object]] = {"clip": _clip, "quote": _quote, "tame": _tame, "line": _line}
    environment.filters.update(ours)
    return environment


def _clip(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit] + " ... (cut)"


def _line(value: object) -> str:
    """Anything that others named, on one line, so that it cannot pass for a line of ours."""
    return one_line(show(value), 120)


def _quote(text: str) -> str:
    """Somebody else's words, marked as such on every line."""
    return "\n".join(f"> {line}".rstrip() for line in printable(text).strip().splitlines())


def _tame(text: str) -> str:
    """A section's text, in which no line passes for the heading of another heartbeat: programs read those."""
    return _HEADING.sub("> ", text)
