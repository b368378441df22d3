"""Writes the pages of the documentation site into a folder, and its settings beside it.

README.md is the front page. Pages get the parts that code makes. What they link to elsewhere in the repository comes
with them, from page to page. A page that nothing leads to, or that the navigation names and is not there, is an error.
"""

import os
import re
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from coral.cli.help.pages import filled

ROOT = Path(__file__).parents[2]
SETTINGS = Path(__file__).with_name("zensical.toml")
DOCS = "docs/"
FRONT = "README.md"
ELSEWHERE = "repository/"  # where the site has what lies outside docs/
LINK = re.compile(r"(?<=\]\()(?!\w+:|#|/)([^)#\s]+)")
FENCE = re.compile(r"^( *)(```+)[^`\n]*\n.*?^\1\2 *$", re.MULTILINE | re.DOTALL)


def main(build: Path) -> None:
    """Write `build`/pages and `build`/zensical.toml. SystemExit names pages that are missing or that nobody finds."""
    shutil.rmtree(build / "pages", ignore_errors=True)
    sources = pages()
    for path in sources:
        target = build / "pages" / place(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith(".md"):
            target.write_text(page(path), encoding="utf-8")
        else:
            shutil.copyfile(ROOT / path, target)
    shutil.copyfile(SETTINGS, build / SETTINGS.name)
    if problems := [*unreachable(sources)]:
        sys.exit("\n".join(problems))


def pages() -> list[str]:
    """The files of the site, as paths in the repository: all pages of docs/, and what links lead to from them."""
    own = (ROOT / DOCS).glob("**/*.md")
    found, todo = dict[str, None](), [FRONT, *sorted(str(path.relative_to(ROOT)) for path in own)]
    while todo:
        path = todo.pop(0)
        if path not in found:
            found[path] = None
            todo += _linked(path)
    return list(found)


def unreachable(sources: list[str]) -> Iterator[str]:
    """A line for each page that the navigation names and is not there, and for each that nothing leads to."""
    named, there = (
        set(_leaves(tomllib.loads(SETTINGS.read_text())["project"]["nav"])),
        {place(path) for path in sources},
    )
    linked = {place(target) for path in sources for target in _linked(path)}
    yield from (f"{SETTINGS.name} names {name}, which is not there" for name in sorted(named - there))
    yield from (f"nothing leads to {name}: add it to {SETTINGS.name}" for name in sorted(there - named - linked))


def place(path: str) -> str:
    """Where the site has a file of the repository."""
    if path == FRONT:
        return "index.md"
    return path.removeprefix(DOCS) if path.startswith(DOCS) else f"{ELSEWHERE}{path}"


def page(path: str) -> str:
    """The text of a page, with what code makes and with links as the site has them."""
    text = filled((ROOT / path).read_text(encoding="utf-8"))
    return _outside_fences(text, lambda part: LINK.sub(lambda link: _moved(path, link[1]), part))


def _linked(path: str) -> Iterator[str]:
    """The files that a page links to. A dead link is not followed: it is reported when the site is built."""
    if path.endswith(".md"):
        text = FENCE.sub("", (ROOT / path).read_text(encoding="utf-8"))
        targets = (_target(path, link[1]) for link in LINK.finditer(text))
        yield from (target for target in targets if (ROOT / target).is_file())


def _target(path: str, link: str) -> str:
    target = os.path.normpath(PurePosixPath(path).parent / link)
    return f"{target}/README.md" if (ROOT / target).is_dir() else target


def _moved(path: str, link: str) -> str:
    target = _target(path, link)
    return os.path.relpath(place(target), PurePosixPath(place(path)).parent) if (ROOT / target).is_file() else link


def _outside_fences(text: str, change: Callable[[str], str]) -> str:
    """The text changed, apart from its blocks of code."""
    end, parts = 0, list[str]()
    for fence in FENCE.finditer(text):
        parts += [change(text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, change(text[end:])])


def _leaves(entries: object) -> Iterator[str]:
    """The pages of a navigation."""
    if isinstance(entries, str):
        yield entries
    elif isinstance(entries, list):
        yield from (leaf for entry in entries for leaf in _leaves(entry))
    elif isinstance(entries, dict):
        yield from _leaves(list(entries.values()))


def folder(arguments: list[str]) -> Path:
    """The folder to write into. SystemExit says how to call this where no folder is given, or an option is."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.exit("cannot write the site: give one folder, which is made: python docs/site/prepare.py build")
    return Path(arguments[0])


if __name__ == "__main__":
    main(folder(sys.argv[1:]))
