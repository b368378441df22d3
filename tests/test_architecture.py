"""The packages: who may import whom, what is pure, which file alone touches a foreign thing, the words, the tests.

Read from the source, so that it also holds for code that no test runs.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from mirror import SMALL_WITH_ONE_IMPORTER, TESTED_ELSEWHERE

from attempts.record import Attempt
from coral.fleet.agent_state import Agent
from coral.fleet.run_state import Job, PendingAttempt
from coral.runtimes.registry import RUNTIMES

ROOT = Path(__file__).parent.parent
PACKAGES = ("attempts", "heartbeats", "workspace", "coral")
TOP = {*PACKAGES, "benchmarks", "docs", "examples", "tests", ".ci", ".gitignore", "Makefile", "pyproject.toml"}
TOP |= {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE"}
FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))

# module or package -> what of ours it may import. The most precise entry counts; `coral` may import everything else.
MAY_IMPORT = {
    "attempts": ("attempts",),
    "heartbeats": ("heartbeats", "attempts"),
    "workspace": ("workspace",),
    "coral": PACKAGES,
    "coral.errors": (),
    "coral.types": ("coral.grader.scores",),  # by the name that graders of the other CORAL import
    "coral.grader": ("coral.grader", "coral.types"),
    "coral.grading.runner": ("coral.grading.finite_score", "coral.grading.foreign_code", "coral.grading.handover"),
    "coral.grading.handover": (),
    "coral.grading.foreign_code": (),
    "coral.grading.finite_score": (),
    "coral.public_check": ("coral.public_check",),
    "coral.public_check.check_child": (),
    "coral.fleet": ("coral.fleet", "coral.errors", "attempts", "heartbeats"),
    "coral.config": (
        "coral.config",
        "coral.errors",
        "coral.runtimes.other_names",  # of agent programs, in tasks of the other CORAL
        "coral.runtimes.registry",  # whether agents can do the research that the task asks of them
        "attempts",
        "heartbeats",
        "workspace.layout",
    ),
    "coral.runtimes": (
        "coral.runtimes",
        "coral.native",  # what options and brains the built-in agent has
        "coral.errors",
        "coral.extras",  # the line that installs the SDK
        "coral.own_code",
        "coral.search_space",  # what `coral validate` says of the files
        "coral.fleet.events",
        "attempts",
        "heartbeats.reply",  # an answer to a heartbeat is no error, whatever words are in it
        "workspace.layout",
    ),
    # With the last, its beats come as often as those of all others.
    "coral.native": (
        "coral.native",
        "coral.codec",
        "coral.own_code",
        "coral.public_check",
        "coral.search_space",
        "attempts",
        "workspace",
        "heartbeats.interval",
    ),
    # The numerical methods know nothing of agents, and the space that they search nothing of methods.
    "coral.native.search.numeric": (
        "coral.native.search.numeric",
        "coral.public_check.candidate",
        "coral.search_space",
    ),
    "coral.search_space": ("coral.search_space", "coral.public_check.candidate"),
    # The packages of the supervisor, from the ground up.
    "coral.processes": ("coral.processes", "workspace.layout"),
    "coral.processes.cgroup": (),
    "coral.processes.launch_tags": ("workspace.layout", "workspace.plain_file"),
    "coral.processes.rlimit_tag": ("workspace.plain_file",),  # the numbers of our own users
    "coral.processes.process_tree": (
        "coral.processes.cgroup",
        "coral.processes.rlimit_tag",
        "coral.processes.without_proc",
        "workspace.plain_file",
    ),
    "coral.processes.without_proc": (),
    "coral.processes.namespaces": (),
    "coral.processes.restricted": ("coral.grader.landlock",),
    "coral.processes.seal": (
        "coral.processes.restricted",
        "coral.errors",
        "coral.processes.process",
        "coral.processes.own_user",
        "coral.grader.landlock",
        "coral.grader.sandbox",
        "workspace.owner",
        "workspace.seal",
    ),
    "coral.processes.end_users": (),
    "coral.processes.own_user": (
        "coral.processes.end_users",
        "coral.processes.restricted",
        "coral.grader.sandbox",
        "workspace.owner",
        "workspace.plain_file",
    ),
    "coral.processes.call_filter": (),
    "coral.processes.process": (
        "coral.processes.call_filter",
        "coral.processes.process_tree",
        "coral.processes.cgroup",
        "coral.processes.namespaces",
        "coral.processes.own_user",
        "coral.processes.rlimit_tag",
        "coral.processes.result_channel",
        "coral.processes.usage",
        "workspace.plain_file",
    ),
    "coral.processes.usage": ("coral.processes.cgroup",),
    "coral.journal": (
        "coral.journal",
        "coral.codec",
        "coral.errors",
        "coral.fleet",
        "coral.processes.process_tree",  # who was started
        "attempts",
        "heartbeats",
        "workspace.layout",
    ),
    "coral.records": ("coral.records", "coral.errors", "coral.fleet", "attempts"),
    "coral.cluster": ("coral.cluster",),  # and of the rest:
    "coral.cluster.bridge": ("coral.cluster.wire", "attempts.files"),
    "coral.cluster.slurm_bridge": ("coral.cluster", "attempts.files"),
    "coral.cluster.keeper": ("coral.cluster.wire", "coral.errors", "coral.extras", "coral.processes.environment"),
    "coral.cluster.remote_grade": (
        "coral.cluster.light_json",
        "coral.cluster.program_end",
        "coral.cluster.wire",
        "coral.grading.handover",
    ),
    "coral.cluster.light_json": (),
    "coral.cluster.guard": (
        "coral.cluster.guard_protocol",
        "coral.grader.remove_tree",
        "coral.processes.result_channel",
    ),
    "coral.cluster.guard_protocol": (),
    "coral.cluster.guard_server": ("coral.cluster.guard", "coral.cluster.guard_protocol", "coral.grader.remove_tree"),
    "coral.cluster.archive": (),
    "coral.cluster.node": (  # a node has none of the rest
        "coral.cluster.archive",
        "coral.cluster.guard_protocol",
        "coral.cluster.spare_guard",
        "coral.cluster.spread_folders",
    ),
    "coral.cluster.spread_folders": (),
    "coral.cluster.node_report": ("coral.cluster.node",),
    "coral.cluster.spare_guard": ("coral.cluster.guard_protocol",),
    "coral.cluster.shipping": ("coral.cluster.archive", "coral.grading.parts"),
    "coral.cluster.mirror": ("coral.grader.remove_tree", "workspace.layout", "workspace.plain_file"),
    "coral.cluster.knowledge_sync": ("coral.cluster.mirror", "workspace.plain_file"),
    "coral.cluster.growing": ("coral.cluster.mirror",),
    "coral.cluster.remote_launch": ("coral.cluster", "attempts.files"),
    "coral.cluster.host": ("coral.cluster", "coral"),
    "coral.grading": (
        "coral.cluster.archive",
        "coral.cluster.keeper",
        "coral.cluster.spread_folders",
        "coral.cluster.wire",
        "coral.grading",
        "coral.grader.remove_tree",
        "coral.config",
        "coral.errors",
        "coral.fleet",
        "coral.processes",
        "attempts",
        "heartbeats.beat",
        "workspace",
    ),
    "coral.importing": ("coral.importing", "coral.config", "coral.errors", "coral.grading.venv", "attempts.files"),
    "coral.audit": (
        "coral.audit",
        "coral.config",
        "coral.errors",
        "coral.grading",
        "coral.processes",
        "attempts",
        "workspace.seal",
        "workspace.seed",
    ),
    "coral.audit.payload": (),
    "coral.notify": (
        "coral.notify",
        "coral.config.alerts",
        "coral.errors",
        "coral.extras",
        "attempts",
        "workspace.layout",
    ),
    "coral.notify.message": ("attempts.fields",),
    "coral.notify.schedule": (),
    "coral.views": (
        "coral.views",
        "coral.agent_setup.roster",
        "coral.fleet",
        "coral.grading.result",
        "coral.grading.kinds",  # which Python grades, for prompts
        "coral.processes.cores",
        "coral.supervisor.context",
        "coral.runtimes",
        "attempts",
        "heartbeats",
        "workspace",
    ),
    "coral.api": (
        "coral.api",
        "coral.errors",
        "coral.extras",
        "coral.reading",
        "coral.views.curve",
        "coral.views.format",
        "attempts",
        "workspace.layout",
    ),
    "coral.reading": (
        "coral.reading",
        "coral.agent_setup.roster",  # whether agents could use a model
        "coral.config.load",
        "coral.config.section",
        "coral.errors",
        "coral.fleet.reasons",  # the keys of budgets
        "coral.supervisor.lock",  # whether somebody supervises the run
        "coral.views",
        "attempts",
        "heartbeats.beat",
        "workspace",
    ),
    "coral.preflight": (
        "coral.preflight",
        "coral.supervisor.clock",
        "coral.config",
        "coral.agent_setup.roster",
        "coral.agent_setup.launch",
        "coral.agent_setup.nodes",
        "coral.errors",
        "coral.extras",
        "coral.fleet",
        "coral.grader",
        "coral.grading",
        "coral.supervisor.output_monitor",
        "coral.journal",
        "coral.native",
        "coral.notify.notifier",  # whether alerts can be sent from here
        "coral.agent_setup.prices",
        "coral.processes",
        "coral.public_check",
        "coral.runs.reload",
        "coral.runs.rules",
        "coral.runs.task_files",
        "coral.runtimes",
        "coral.views",
        "attempts",
        "heartbeats",
        "workspace",
    ),
}
FOR_THE_TOP = (
    "coral.cli",
    "coral.web",
    "coral.__main__",
    "coral.api",
)  # imported by nobody else; by `coral` when asked for
EMPTY_PACKAGES = (
    "attempts",
    "workspace",
    "coral",
    "coral.api",
    "coral.audit",
    "coral.cluster",
    "coral.config",
    "coral.fleet",
    "coral.grading",
    "coral.importing",
    "coral.native",
    "coral.native.answers",
    "coral.native.llm",
    "coral.native.llm.tools",
    "coral.native.search",
    "coral.native.search.numeric",
    "coral.notify",
    "coral.preflight",
    "coral.processes",
    "coral.public_check",
    "coral.reading",
    "coral.records",
    "coral.search_space",
    "coral.views",
)

PURE = ("attempts.fields", "attempts.record", "attempts.progress", "attempts.noise", "attempts.standing")
PURE += ("attempts.failures",)
PURE += ("heartbeats.heartbeat",)
PURE += ("heartbeats.trigger", "heartbeats.reply", "heartbeats.beat", "heartbeats.entry", "coral.fleet", "coral.errors")
PURE += ("coral.notify.message", "coral.notify.schedule")
PURE += ("coral.types", "coral.grader.scores", "coral.codec", "coral.grading.finite_score", "coral.records.recent")
PURE_STDLIB = {
    "__future__",
    "abc",
    "bisect",
    "collections",
    "dataclasses",
    "difflib",
    "enum",
    "functools",
    "graphlib",
    "hashlib",
}
PURE_STDLIB |= {
    "itertools",
    "json",
    "math",
    "numbers",
    "operator",
    "re",
    "statistics",
    "types",
    "typing",
    "unicodedata",
}
IMPURE_CALLS = {"open", "print", "input", "exec", "eval", "__import__", "breakpoint"}

STDLIB_ONLY = (
    "attempts.record",
    "attempts.store",
    "workspace.layout",
    "workspace.submit",
    "coral.types",
    "coral.grader",
)
STDLIB_ONLY += (
    "coral.grading.runner",
    "coral.grading.handover",
    "coral.cli",
    "coral.cli.commands.eval",
    "coral.cli.commands.wait",
    "coral.cli.commands.diff",
    "heartbeats.pulse",
)
STDLIB_ONLY += ("coral.cluster.remote_grade", "coral.cluster.guard", "coral.cluster.slurm_job")
STDLIB_ONLY += ("coral.cluster.node", "coral.cluster.spare_guard", "coral.cluster.guard_protocol")
STDLIB_ONLY += ("coral.cluster.guard_server", "coral.cluster.node_report", "coral.cluster.spread_folders")
STDLIB_ONLY += ("coral.cluster.remote_launch", "coral.cluster.program_end")
STDLIB_ONLY += ("coral.cluster.host", "coral.cluster.launch_guard")
STDLIB_ONLY += ("coral.cli.commands.revert", "coral.cli.commands.checkout")
SLOW_STDLIB = {"asyncio", "sqlite3", "importlib.metadata", "concurrent"}

# third-party package -> where it may be imported
HOMES = {
    "git": ("workspace.git",),
    "watchdog": ("coral.supervisor.folder_watch",),
    "psutil": ("coral.processes.without_proc", "coral.processes.usage"),
    "jinja2": ("heartbeats",),
    "ruamel": ("coral.config", "heartbeats.folder", "coral.runtimes.scripted.script", "coral.runtimes.limits"),
    "pydantic": ("coral.config", "coral.native.llm"),
    "pydantic_core": ("coral.config",),
    "rich": ("coral.cli",),
    "starlette": ("coral.web",),
    "sse_starlette": ("coral.web.app",),
    "pygments": ("coral.web.diff_data",),
    "uvicorn": ("coral.web.server",),
    "markdown_it": ("coral.cli.report.knowledge", "coral.cli.ui.notes_export"),
    "matplotlib": ("coral.cli.report.picture",),
    "shtab": ("coral.cli.commands.completion",),
    "acp": ("coral.runtimes.acp.conversation",),
    "pytest": ("coral.templates.pytest",),
    "numpy": ("coral.native.search.numeric", "coral.grader"),
    "scipy": ("coral.native.search.numeric",),
    "cma": ("coral.native.search.numeric.evolution",),
    "pandas": ("coral.api.rows", "coral.api.curve", "coral.api.usage"),
    "apprise": ("coral.notify.target",),
    "ray": ("coral.cluster.ray_bridge", "coral.cluster.owner", "coral.cluster.ray_host"),
}
# Who starts or signals processes; each but the first for children of its own: set-up commands, git, ps, the public
# check, candidates, a trial of the sandbox, a process with a secret for an audit to look for, ourselves.
# `scripted.steps` is itself an agent, which does what agents do; `acp.program` starts the agent that it talks to.
PROCESSES = (
    "coral.processes.process",
    "coral.processes.prestarted",
    "workspace.git",
    "workspace.submit",
    "workspace.locks",
    "workspace.seal",
    "coral.native",
    "coral.processes.command",
    "coral.public_check.check",
    "coral.runs.detach",
)
PROCESSES += ("coral.runtimes.scripted.steps", "workspace.cancellation", "coral.preflight.doctor")
PROCESSES += ("coral.runtimes.acp.program", "coral.grader.candidate", "coral.grader.inside")
PROCESSES += ("coral.grader.as_user", "coral.grader.starter")
PROCESSES += ("coral.grader.landlock", "coral.processes.seal", "coral.processes.own_user")
PROCESSES += ("coral.processes.end_users",)
PROCESSES += ("coral.api.handle",)  # the command line
PROCESSES += ("coral.notify.target",)  # a program that is told of alerts
PROCESSES += ("coral.grader.task_grader", "coral.templates.benchmark")  # in graders, of candidates
PROCESSES += ("coral.web.resuming",)  # the command that resumes a run
PROCESSES += ("coral.cli.commands.ui",)  # the dashboard beside a run that is watched
PROCESSES += ("coral.audit.audit", "coral.audit.payload")  # the second runs in a candidate
PROCESSES += ("coral.cluster.keeper",)  # the bridge
PROCESSES += ("coral.cluster.node", "coral.cluster.spare_guard", "coral.cluster.guard")  # graders on a node
PROCESSES += ("coral.cluster.guard_server", "coral.cluster.guard_protocol")  # guards, and what a killed one leaves
PROCESSES += ("coral.cluster.slurm_bridge",)  # squeue
PROCESSES += ("coral.cluster.program_end",)  # itself, as its program was ended
PROCESSES += ("coral.cluster.host", "coral.cluster.launch_guard")  # the programs of agents on a node
GIT = ("workspace.git", "workspace.submit")
BROAD = (
    "coral.cli",
    "coral.supervisor.perform",
    "coral.supervisor.gather",
    "coral.public_check.check_child",
    "coral.native.search.numeric.evolution",  # a damaged pickle may raise anything
    "coral.native.llm.plugins",
    "coral.own_code",
    "coral.runtimes.registry",  # a runtime of a task may raise anything when it is made
    "heartbeats.pulse",
    "heartbeats.beat_writer",
)  # the fourth runs a task's check in a process of its own: decision 0019; the last five run work of others
STARTERS = {
    "subprocess": {"Popen", "run", "call", "check_call", "check_output", "getoutput"},
    "os": {
        "kill",
        "killpg",
        "fork",
        "forkpty",
        "posix_spawn",
        "posix_spawnp",
        "system",
        "popen",
        "execv",
        "execve",
        "execvp",
    },
    "asyncio": {"create_subprocess_exec", "create_subprocess_shell"},
    "signal": {"pidfd_send_signal", "pthread_kill"},
}


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in FILES}


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"), filename=str(MODULES[module]))


@cache
def nodes(module: str) -> tuple[ast.AST, ...]:
    """Every node of a module's tree."""
    return tuple(ast.walk(tree(module)))


def within(module: str, places: tuple[str, ...]) -> bool:
    return any(module == place or module.startswith(f"{place}.") for place in places)


def imported(node: ast.AST) -> Iterator[str]:
    """The modules that one statement imports; `from coral.processes import process` is coral.processes.process."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            yield inner if inner in MODULES else str(node.module)


@cache
def imports(module: str) -> set[str]:
    """Everything that a module may ever import."""
    return {name for node in nodes(module) for name in imported(node)}


def at_start(statements: list[ast.stmt]) -> Iterator[str]:
    """What is imported while a module is imported: not in functions, not for the type checker only."""
    for node in statements:
        yield from imported(node)
        if isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.dump(node.test):
            yield from at_start([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            yield from at_start([*node.body, *node.orelse, *node.finalbody])
        elif isinstance(node, ast.ClassDef | ast.With):
            yield from at_start(node.body)


def with_parents(module: str) -> list[str]:
    """Importing a.b.c runs a and a.b first."""
    parts = module.split(".")
    return [".".join(parts[: depth + 1]) for depth in range(len(parts))]


def starts_with(module: str) -> set[str]:
    """All modules, ours and others', that importing a module brings in by our own import statements."""
    seen, todo = set[str](), with_parents(module)
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in MODULES:
            todo += [part for found in at_start(tree(name).body) for part in with_parents(found)]
    return seen


def calls(module: str) -> Iterator[str]:
    """Dotted names that are called, imported names spelled out: `Popen(...)` is subprocess.Popen."""
    origin = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in nodes(module)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for node in nodes(module):
        if isinstance(node, ast.Call):
            said = ast.unparse(node.func)
            yield origin.get(said, said)


def test_the_packages_are_found() -> None:
    assert {name.split(".")[0] for name in MODULES} == set(PACKAGES)
    assert len(MODULES) > 40


def rule_of(module: str) -> str:
    return max((place for place in MAY_IMPORT if within(module, (place,))), key=len)


def test_a_module_imports_only_what_its_package_may() -> None:
    ours = {(module, name) for module in MODULES for name in imports(module) if name.split(".")[0] in PACKAGES}
    allowed = {module: MAY_IMPORT[rule_of(module)] for module in MODULES}
    assert {(module, name) for module, name in ours if not within(name, allowed[module]) and name != "coral"} == set()
    below = {(module, name) for module, name in ours if not within(module, FOR_THE_TOP) and module != "coral"}
    assert {(module, name) for module, name in below if within(name, FOR_THE_TOP)} == set()


def test_every_import_that_is_allowed_is_used() -> None:
    used = {(rule_of(module), name) for module in MODULES for name in imports(module)}
    for place, allowed in MAY_IMPORT.items():
        needed = [
            other for other in allowed if any((place, name) in used and within(name, (other,)) for _, name in used)
        ]
        assert set(allowed) - {place} <= set(needed), place


def test_the_top_of_the_repository_is_what_a_reader_expects_and_nothing_else() -> None:
    kept = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {name.partition("/")[0] for name in kept.split("\0") if name} == TOP


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {module: {name for name in at_start(tree(module).body) if name in MODULES} for module in MODULES}
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"modules import each other in a circle: {' <- '.join(error.args[1])}")


def test_importing_a_package_imports_nothing_else() -> None:
    assert {(module, name) for module in EMPTY_PACKAGES for name in at_start(tree(module).body)} == set()


def test_a_pure_module_imports_and_calls_nothing_impure() -> None:
    pure = [module for module in MODULES if within(module, PURE)]
    brought = {(module, name) for module in pure for name in imports(module)}
    foreign = {(module, name) for module, name in brought if name.split(".")[0] not in PACKAGES}
    assert {(module, name) for module, name in foreign if name.split(".")[0] not in PURE_STDLIB} == set()
    assert {(module, name) for module, name in brought - foreign if not within(name, PURE)} == set()
    assert {(module, name) for module in pure for name in calls(module) if name in IMPURE_CALLS} == set()


def test_what_agents_run_often_imports_the_standard_library_alone() -> None:
    others = {(module, name) for module in STDLIB_ONLY for name in starts_with(module) if name not in MODULES}
    assert {(module, name) for module, name in others if name.split(".")[0] not in sys.stdlib_module_names} == set()
    assert {(module, name) for module, name in others if within(name, tuple(SLOW_STDLIB))} == set()


def test_one_home_for_each_foreign_package() -> None:
    used = {(module, name.split(".")[0]) for module in MODULES for name in imports(module)}
    foreign = {(module, name) for module, name in used if name not in {*PACKAGES, *sys.stdlib_module_names}}
    assert {(module, name) for module, name in foreign if not within(module, HOMES.get(name, ()))} == set()


def test_ray_is_imported_by_the_one_process_that_speaks_to_it() -> None:
    """It takes half a second and 65 MB; where grades run on this machine, nobody has it."""
    on_nodes = {"coral.cluster.owner", "coral.cluster.ray_host"}
    assert {module for module in MODULES if "ray" in starts_with(module)} == on_nodes
    named = r"coral\.cluster\.(ray_bridge|ray_connection|ray_launch_bridge|owner|ray_host)\b"
    importing = {module for module in MODULES if re.search(named, tree_text(module))}
    assert importing <= {*on_nodes, "coral.cluster.ray_bridge", "coral.cluster.ray_launch_bridge"}


def tree_text(module: str) -> str:
    return ast.unparse(tree(module))


def test_processes_are_started_and_signalled_in_one_place() -> None:
    forbidden = {f"{package}.{what}" for package, names in STARTERS.items() for what in names}
    others = [module for module in MODULES if not within(module, PROCESSES)]
    assert {(module, name) for module in others for name in calls(module) if name in forbidden} == set()


def test_no_child_is_started_with_preexec_fn() -> None:
    """preexec_fn is slow and unsafe with threads."""
    assert [module for module in MODULES if "preexec_fn" in MODULES[module].read_text(encoding="utf-8")] == []


def test_git_is_run_by_two_files() -> None:
    words = {
        module
        for module in MODULES
        for node in nodes(module)
        if isinstance(node, ast.List | ast.Tuple) and node.elts and ast.unparse(node.elts[0]) == "'git'"
    }
    assert words <= set(GIT)


def test_broad_exception_handlers_are_in_named_modules() -> None:
    broad = {
        module
        for module in MODULES
        for node in nodes(module)
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or ast.unparse(node.type) in ("Exception", "BaseException"))
        and not any(isinstance(inner, ast.Raise) for inner in node.body)
    }
    assert {module for module in broad if not within(module, BROAD)} == set()


def test_modules_and_functions_are_short_and_modules_have_a_docstring() -> None:
    assert {module for module, path in MODULES.items() if lines_of(path) > 400} == set()
    silent = {module for module in MODULES if not ast.get_docstring(tree(module))}
    assert {module for module in silent if MODULES[module].read_text(encoding="utf-8").strip()} == set()
    long = {
        (module, node.name)
        for module in MODULES
        for node in nodes(module)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (node.end_lineno or 0) - node.lineno >= 50
    }
    assert long == set()


# "Returns", "Writes", "Whether" at the beginning of a docstring.
OTHER_MOOD = re.compile(r"(?!As\b)(?:[A-Z][a-z]+[a-rt-z]s|Does|Goes|Has|Is|Whether)\b")


def test_docstrings_of_functions_begin_with_an_imperative() -> None:
    assert {
        (module, node.name)
        for module in MODULES
        for node in nodes(module)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and not any("property" in ast.unparse(decorator) for decorator in node.decorator_list)
        and OTHER_MOOD.match(ast.get_docstring(node) or "")
    } == set()


# Where a runtime's name stands outside coral/runtimes, and what it means there.
NAMED_RUNTIMES = {
    ("coral.config.model", "native"),  # the default of agents.runtime
    ("coral.importing.repository", "command"),  # a key of a task's args
    ("coral.templates.benchmark.grade", "command"),
    ("coral.extras", "acp"),  # the extra of the package
    *((f"coral.{module}", "command") for module in ("config.model", "config.paths", "grading.kinds")),  # grader.command
    *((f"coral.{module}", "command") for module in ("cli.commands.job", "supervisor.request_format", "views.report")),
}


def test_no_other_module_knows_a_runtime_by_name() -> None:
    """In no text that the program could compare or show, word by word; docstrings may name one as an example."""
    others = [module for module in MODULES if not within(module, ("coral.runtimes", "coral.native"))]
    assert {(module, name) for module in others for name in runtimes_named_in(module)} <= NAMED_RUNTIMES


def runtimes_named_in(module: str) -> set[str]:
    bodies = [node.body for node in nodes(module) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
    docstrings = {body[0].value for body in bodies if body and isinstance(body[0], ast.Expr)}
    texts = [
        node.value
        for node in nodes(module)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings
    ]
    # "command" and "pi" are words of their own: they count only where they are the whole text.
    words = {word for text in texts for word in re.findall(r"[a-z]+", text.lower())} - {"command", "pi"}
    return (words | set(texts)) & RUNTIMES.keys()


# Records of the fleet's state, by the names that the supervisor's variables have for them. A published record is also
# named `attempt`.
STATE = {"agent": Agent, "pending": PendingAttempt, "attempt": PendingAttempt, "job": Job}
NO_STATE = {"name", "number", "agent", "launch", *(part.name for part in fields(Attempt))}
# What of it the supervisor asks for all the same, and why.
ASKED_FOR = {
    ("coral.supervisor.gather", "agent.session")  # the program may have said it in output that is not read yet
}


def conditions(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions by which a statement or an expression chooses."""
    match node:
        case ast.If() | ast.IfExp() | ast.While() | ast.Assert():
            yield node.test
        case ast.comprehension(ifs=ifs):
            yield from ifs
        case ast.BoolOp(values=values):
            yield from values
        case ast.Match(subject=subject):
            yield subject
        case ast.match_case(guard=guard) if guard is not None:
            yield guard


def test_the_supervisor_chooses_nothing_by_the_state_of_an_agent_or_an_attempt() -> None:
    """It asks the fleet; the phases and steps that decisions are made from it does not even know."""
    modules = [module for module in MODULES if within(module, ("coral.supervisor",))]
    known = {(module, name) for module in modules for name in tree_names(module)}
    assert {(module, name) for module, name in known if name in ("Phase", "AttemptStep", "LIVE", "OCCUPYING")} == set()
    asked = {
        (module, ast.unparse(part))
        for module in modules
        for node in nodes(module)
        for condition in conditions(node)
        for part in ast.walk(condition)
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and is_state(part.value.id, part.attr)
    }
    assert asked <= ASKED_FOR


def tree_names(module: str) -> set[str]:
    return {alias.name for node in nodes(module) if isinstance(node, ast.ImportFrom) for alias in node.names}


def is_state(name: str, field: str) -> bool:
    return name in STATE and field in {part.name for part in fields(STATE[name])} - NO_STATE


def test_gathering_and_performing_know_nothing_of_each_other() -> None:
    readers = ("gather", "inbox", "disk", "folder_watch", "job_end")
    gathering = {f"coral.supervisor.{name}" for name in readers}
    performing = {f"coral.supervisor.{name}" for name in ("perform", "starts", "workers")}
    assert starts_with("coral.supervisor.gather") & performing == set()
    assert starts_with("coral.supervisor.perform") & gathering == set()


def test_views_know_of_the_supervisor_its_context_alone() -> None:
    known = {name for module in MODULES if within(module, ("coral.views",)) for name in imports(module)}
    assert {name for name in known if within(name, ("coral.supervisor",))} == {"coral.supervisor.context"}


# Words that had several meanings, or none outside of this repository. A name is split at underscores and capitals.
_WORDS = """
amends asks census crew desk doorbell draft each ear ears enlist equip forgives house lack lacking ladder lanes
leash loose office owe owed owes recounts room rooms said senses speech tally tidings told twin wear
"""
BANNED = frozenset(_WORDS.split())
GIT_WORDS = frozenset(["loose_object", "loose"])  # git's own name for an object that is not packed
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


def identifiers(module: str) -> Iterator[str]:
    for node in nodes(module):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.arg | ast.keyword) and node.arg:
            yield node.arg
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name


def test_no_identifier_has_a_banned_word() -> None:
    words = [(module, name) for module in MODULES for name in {*identifiers(module), *module.split(".")} - GIT_WORDS]
    assert {pair for pair in words if BANNED & {word.lower() for word in WORD.findall(pair[1])}} == set()


# Loop variables that do not say what they hold: inside a comprehension or lambda there is nothing else that says it.
NO_NOUNS = frozenset(["found", "held", "it", "one"])


def loop_variables(module: str) -> Iterator[str]:
    for node in nodes(module):
        if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            yield from (name.id for name in ast.walk(node.target) if isinstance(name, ast.Name))
        elif isinstance(node, ast.Lambda):
            yield from (argument.arg for argument in node.args.args)


def test_a_loop_variable_is_the_noun_that_it_holds() -> None:
    assert {(module, name) for module in MODULES for name in loop_variables(module) if name in NO_NOUNS} == set()


def test_no_two_public_classes_have_one_name() -> None:
    defined: dict[str, list[str]] = {}
    for module in MODULES:
        for node in tree(module).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                defined.setdefault(node.name, []).append(module)
    assert {name: modules for name, modules in defined.items() if len(modules) > 1} == {}


def test_few_modules_lie_directly_in_coral() -> None:
    assert len(list((ROOT / "coral").glob("*.py"))) <= 7


def test_a_small_module_with_one_importer_has_a_reason() -> None:
    importers: dict[str, set[str]] = {}
    for module in MODULES:
        for name in imports(module):
            importers.setdefault(name, set()).add(module)
    small = {name for name, path in MODULES.items() if path.name != "__init__.py" and lines_of(path) < 60}
    assert {name for name in small if len(importers.get(name, ())) == 1} - SMALL_WITH_ONE_IMPORTER.keys() == set()


def lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_a_module_is_tested_in_the_folder_of_its_package() -> None:
    """By the file of its name, or by one that imports it; where neither is, the list says where it is tested."""
    modules = {module for module, path in MODULES.items() if not path.name.startswith("__")}
    elsewhere = {name for name in modules if not within(name, ("coral.templates",)) and not is_tested_beside(name)}
    assert elsewhere == TESTED_ELSEWHERE.keys()


def is_tested_beside(module: str) -> bool:
    *packages, name = module.split(".")
    folders = [ROOT.joinpath("tests", kind, *packages) for kind in ("unit", "integration")]
    if packages[:2] == ["coral", "fleet"]:
        folders.append(ROOT / "tests" / "decisions")
    files = [path for folder in folders for path in folder.glob("test_*.py")]
    return any(path.name == f"test_{name}.py" or module in imports_of(path) for path in files)


@cache
def imports_of(path: Path) -> set[str]:
    """The modules that a test file imports."""
    return {name for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) for name in imported(node)}
