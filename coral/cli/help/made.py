"""Makes those parts of documentation pages that follow from the code, as Markdown, so that they are never out of
date."""

from collections.abc import Callable, Iterator, Mapping

from coral.cli import EXIT_CODES
from coral.cli.help.commands import command_reference, parsers, whole_parser


def _task() -> str:
    from coral.config.reference import task_reference  # only here: it takes long to import

    return task_reference()


def _exit_codes() -> str:
    rows = [f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()]
    return "\n".join(["| code | meaning |", "|---|---|", *rows])


def _command_exit_codes() -> str:
    rows = [
        f"| `{parser.prog}` | {code} | {meaning} |"
        for parser in parsers(whole_parser())
        for code, meaning in parser.exit_codes.items()
    ]
    return "\n".join(["| command | code | meaning |", "|---|---|---|", *rows])


def _prompt_names() -> str:
    """Return a table of all names that a prompt may use, with their values in the example."""
    from heartbeats.example import example_context

    rows = [f"| `{name}` | {value} |" for name, value in _leaves("", example_context())]
    return "\n".join(["| name | for example |", "|---|---|", *rows])


def _prompt_filters() -> str:
    from heartbeats.dialect import FILTERS

    return f"Filters: {', '.join(f'`{name}`' for name in sorted(FILTERS))}."


def _leaves(path: str, value: object) -> Iterator[tuple[str, str]]:
    """Yield (name, value) for each value below a name. For a list of mappings, the fields of its first element are
    named."""
    if isinstance(value, Mapping):
        for name, inner in sorted(value.items()) if not path else value.items():
            yield from _leaves(f"{path}.{name}" if path else str(name), inner)
    elif isinstance(value, list) and value and isinstance(value[0], Mapping):
        fields = ", ".join(f"`{name}`" for name in value[0])
        yield path, f"a list; each element has {fields}"
    else:
        yield path, _shown(value)


def _shown(value: object) -> str:
    if value == "":
        return "an empty text"
    if isinstance(value, bool) or value is None:
        return f"`{str(value).lower()}`"
    if isinstance(value, list):
        return "a list: " + ", ".join(f"`{item}`" for item in value)
    return f"`{' '.join(str(value).split())}`".replace("|", "\\|")


def _built_in() -> str:
    from heartbeats.heartbeat import BUILT_IN

    rows = [
        f"| `{heartbeat.name}` | {heartbeat.when} | {heartbeat.delivery} | {'yes' if heartbeat.protected else 'no'} |"
        for heartbeat in BUILT_IN
    ]
    return "\n".join(["| name | when | delivery | protected |", "|---|---|---|---|", *rows])


def _python() -> str:
    from coral.cli.help.python_reference import python_reference  # only here: it imports most of what reads a run

    return python_reference()


MADE: Mapping[str, Callable[[], str]] = {
    "built-in-heartbeats": _built_in,
    "command-exit-codes": _command_exit_codes,
    "commands": command_reference,
    "exit-codes": _exit_codes,
    "prompt-filters": _prompt_filters,
    "prompt-names": _prompt_names,
    "python": _python,
    "task": _task,
}
