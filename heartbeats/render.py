"""Renders a template into the text that an agent reads.

Agents and tasks write their prompts in the restricted dialect. Whatever is wrong with a template, the agent gets a
text: one that cannot be rendered is sent as it was written, under a line with the reason. `render` never raises.
"""

import contextlib
import re
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path

from jinja2 import FileSystemLoader, StrictUndefined, TemplateError, TemplateSyntaxError, nodes
from jinja2.bccache import Bucket, FileSystemBytecodeCache

from attempts.fields import BAD_DATA, one_line, printable
from heartbeats.dialect import FUEL_KEY, Fuel, NotAllowed, compiled, objections, parsed
from heartbeats.example import CONTEXT_NAMES, example_context
from heartbeats.heartbeat import PROMPT_BYTES, is_blank
from heartbeats.plain import OUTPUT_BYTES, Copy, PlainEnvironment, joined, show

PROMPTS = Path(__file__).parent / "prompts"
# Everything that parsing, compiling and running a hostile text can raise. TemplateError is what Jinja itself detects.
_FAILURES = (TemplateError, NotAllowed, *BAD_DATA, AssertionError, MemoryError, NameError, RecursionError, SyntaxError)
_HEADING = re.compile(r"^(?=[ \t]*##[ \t]*Heartbeat:)", re.MULTILINE | re.IGNORECASE)
_GAPS = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True)
class Rendered:
    """The text for the agent. `warning`: tells the operator why the text is not what the template should give, or is
    ""."""

    text: str
    warning: str = ""


def render(template: str, context: Mapping[str, object]) -> Rendered:
    """Render a prompt that anybody may have written. Never raises, and never returns a blank text."""
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
    """Render one of Coral's own templates, by its name (`reflect`). An error in it is a bug, and is raised."""
    text = _shipped().get_template(f"{name}.md.j2").render(context)
    return _GAPS.sub("\n\n", printable(text)).strip() + "\n"


def problems(template: str) -> list[str]:
    """Return what is wrong with a prompt, each with its line number, found before the prompt is used; empty if nothing
    is."""
    if len(template.encode("utf-8", "replace")) > PROMPT_BYTES:
        return [f"it is longer than {PROMPT_BYTES} bytes"]
    try:
        tree = parsed(template)
        found = sorted({*objections(tree), *_unknown_names(tree)})
        if found:
            return [f"line {line}: {what}" for line, what in found]
        text = _run(template, example_context())
    except _FAILURES as failure:
        return [_reason(failure)]
    return ["it says nothing once rendered"] if is_blank(text) else []


def _run(source: str, context: Mapping[str, object]) -> str:
    """Render piece by piece, so that an endless text is stopped while it grows."""
    plain = Copy().of(context)
    assert isinstance(plain, dict)
    return printable(joined(compiled(source).generate({**plain, FUEL_KEY: Fuel()}), "")).strip()


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
    frames = traceback.walk_tb(failure.__traceback__)
    lines = [line for frame, line in frames if frame.f_code.co_filename in ("<template>", "<unknown>")]
    place = f"line {lines[-1]}: " if lines else ""
    return f"{place}{failure}" if str(failure) else f"{place}{type(failure).__name__}"


def _unknown_names(tree: nodes.Template) -> set[tuple[int, str]]:
    names = list(tree.find_all(nodes.Name))
    known = CONTEXT_NAMES | {"loop"} | {name.name for name in names if name.ctx == "store"}
    return {
        (name.lineno, f"there is no name {name.name[:40]}; there are: {', '.join(sorted(CONTEXT_NAMES))}")
        for name in names
        if name.name not in known
    }


# Coral's own templates. They may use all of Jinja, and the filters below.


class _Compiled(FileSystemBytecodeCache):
    """Keeps compiled templates where Python keeps compiled modules: compiling the templates of a first prompt takes 30
    ms."""

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
    environment.filters.update({"clip": _clip, "quote": _quote, "without_headings": _without_headings, "line": _line})
    return environment


def _clip(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit] + " ... (cut)"


def _line(value: object) -> str:
    """Return a name that somebody else chose, on one line, so that it cannot be taken for a line of the prompt."""
    return one_line(show(value), 120)


def _quote(text: str) -> str:
    """Return a text of somebody else, marked as a quotation on every line."""
    return "\n".join(f"> {line}".rstrip() for line in printable(text).strip().splitlines())


def _without_headings(text: str) -> str:
    """Return a section's text in which no line is the heading of another heartbeat, because programs read those
    headings."""
    return _HEADING.sub("> ", text)
