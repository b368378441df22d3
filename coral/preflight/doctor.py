"""Checks whether this machine has what a fleet needs, and gives advice on what is missing or could be better.

The result of these checks stops no start: a start that cannot work reports that itself.
"""

import os
import platform
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from attempts.fields import one_line
from coral import __version__, extras
from coral.agent_setup.launch import launch_environment
from coral.agent_setup.roster import assignments_of
from coral.config.load import Config
from coral.config.model import Assignment
from coral.grader import Fail, run_candidate
from coral.grader.sandbox import SEALED
from coral.grading.sandbox import level_of_graders, places_of
from coral.native.options import missing_library
from coral.preflight.check import Check, Health
from coral.preflight.nodes import AGENT_NODES, FREE_BYTES, agent_nodes, grading_nodes
from coral.preflight.unchecked import UNCHECKED
from coral.processes import cgroup, environment, rlimit_tag, seal
from coral.processes.cores import usable_cores
from coral.processes.seal import ANYWHERE
from coral.processes.usage import free_memory, machine_memory
from coral.runtimes import programs, registry
from coral.runtimes.agent import AgentProgram
from coral.runtimes.model import LaunchSpec
from coral.views.format import plural
from workspace.disk import disk_problem_of
from workspace.seal import Level

ANSWER_SECONDS = 60.0  # for a program to say its version
WATCHES, INSTANCES = 65_536, 128
FREE_MEMORY = 0.08  # share of all memory from which on a supervisor calls it enough
FILES = 1024
INOTIFY = Path("/proc/sys/fs/inotify")
FEW_SIGNS = "are found by session, parent and environment: a daemon that drops all three is missed"
DELEGATE = "where systemd runs: `systemd-run --user --scope -p Delegate=yes coral start ...`"
_VERSION = re.compile(r"\d+\.\d+")
BUBBLEWRAP = "install bubblewrap (apt-get install bubblewrap): see docs/trust.md"
UNSEALED = "until then, run what you would let run in your own account"
ON_MACOS = "give Coral an account or a virtual machine of its own: see docs/trust.md"


def _measured(name: str, enough: bool, text: str, advice: str) -> Check:
    return Check(name, Health.WELL, text) if enough else Check(name, Health.NOTE, text, advice)


def inspect_machine(folder: Path, config: Config | None) -> Iterator[Check]:
    """Check the machine, then every agent program. `folder`: where runs would be. `config`: the task, whose programs
    must be installed; None if there is no task."""
    machine = f"{platform.system()}, {plural(usable_cores(), 'core')}"
    yield Check("coral", Health.WELL, f"{__version__}, Python {platform.python_version()} on {machine}")
    yield from _tried("git", _git)
    yield from _tried("agents", lambda: _agents(folder, config))
    yield from _tried("candidates", _candidates)
    yield from _tried("leftovers", _leftovers)
    yield from _watching()
    yield from _tried("disk", lambda: _disk(folder))
    yield from _tried("memory", _memory)
    yield from _tried("files", _open_files)
    yield from _tried("prices", _prices)
    yield from _tried("search", _search)
    if config is not None and config.grader.is_remote:
        yield from _tried("cluster", lambda: grading_nodes(config))
    if config is not None and config.agents.are_remote:
        yield from _tried(AGENT_NODES, lambda: agent_nodes(config))
    driven = assignments_of(config) if config is not None else ()
    names = [name for name in registry.RUNTIMES if isinstance(registry.find(name, {}), AgentProgram)]
    with ThreadPoolExecutor(4) as pool:
        for checks in pool.map(lambda name: _tried(name, lambda: _program(name, _of(driven, name))), names):
            yield from checks
    yield from (_of_the_task(assignment) for assignment in driven if assignment.runtime not in names)


def _of(driven: Iterable[Assignment], name: str) -> list[Assignment]:
    return [part for part in driven if part.runtime == name]


def _tried(name: str, check: Callable[[], Check | list[Check]]) -> list[Check]:
    """Run a check; if it cannot be made, as on a machine in trouble, that is a finding, and the other checks go on."""
    try:
        found = check()
    except UNCHECKED as error:
        return [Check(name, Health.NOTE, f"cannot be checked: {error}", "a run may start all the same")]
    return found if isinstance(found, list) else [found]


def _git() -> Check:
    found = shutil.which("git")
    if found is None:
        return Check("git", Health.WRONG, "there is none on PATH", "install git")
    version = _version_line([found, "--version"], environment.base()).removeprefix("git version ")
    return Check("git", Health.WELL, f"{version or 'it does not say its version'} ({found})")


def _agents(folder: Path, config: Config | None) -> Check:
    places = ANYWHERE if config is None else places_of(config, folder)
    level, of_graders = seal.strongest(places), level_of_graders("best", places)
    graders = "so are graders" if of_graders is level else f"graders run as you: {seal.problem(Level.LANDLOCK)}"
    if level is Level.BUBBLEWRAP:
        return Check("agents", Health.WELL if of_graders is level else Health.NOTE, f"are sealed by {level}; {graders}")
    text = "run as you, on your disk" if level is Level.NONE else f"are sealed by {seal.name_of(level)} alone"
    text += f", {graders}: {seal.missing(level, places)}"
    return Check("agents", Health.NOTE, text, ON_MACOS if sys.platform == "darwin" else f"{BUBBLEWRAP}; {UNSEALED}")


def _candidates() -> Check:
    """Check how graders can seal candidates, by running one at each level, the strongest first."""
    with tempfile.TemporaryDirectory(prefix="coral-doctor-") as folder:
        Path(folder).chmod(0o711)  # candidates may have a user of their own
        Path(folder, "candidate.py").write_text("def answer():\n    return 42\n", encoding="utf-8")
        for level in SEALED:
            with suppress(OSError, Fail):
                run_candidate(folder, "candidate.py:answer", seal=[level])
                advice = "" if level == SEALED[0] else BUBBLEWRAP
                health = Health.NOTE if advice else Health.WELL
                return Check("candidates", health, f"graders can run them sealed by {level}", advice)
    advice = ON_MACOS if sys.platform == "darwin" else BUBBLEWRAP
    return Check("candidates", Health.NOTE, "graders can limit what they use, and cannot seal them", advice)


def _leftovers() -> Check:
    """Check how processes that a launch leaves behind are found, with a child that blocks as a launch does before it
    may run."""
    groups = cgroup.Groups(f"doctor-{os.getpid()}")
    group = groups.make("try")
    enter = cgroup.ENTER if group else "false"
    child = subprocess.Popen(
        ["/bin/sh", "-c", f"{enter} && echo in || echo out; read end", "sh", group],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert child.stdout is not None
    entered = child.stdout.readline() == b"in\n" and child.pid in cgroup.members(group)
    marked = rlimit_tag.put(child.pid, "doctor") and rlimit_tag.read(child.pid) == rlimit_tag.value_of("doctor")
    child.communicate()
    groups.remove_empty()
    if entered:
        return Check("leftovers", Health.WELL, f"are found by control groups, below {cgroup.own_group()}")
    if marked:
        return Check("leftovers", Health.WELL, "are found by a mark on every process; no control groups can be made")
    return Check("leftovers", Health.NOTE, FEW_SIGNS, DELEGATE)


def _watching() -> Iterator[Check]:
    """Check the limits of inotify. With too few watches the supervisor polls files, and notices changes a few seconds
    later."""
    if sys.platform != "linux":
        return
    for name, least in (("max_user_watches", WATCHES), ("max_user_instances", INSTANCES)):
        try:
            found = int((INOTIFY / name).read_text())
        except (OSError, ValueError):
            yield Check("inotify", Health.NOTE, f"{name} cannot be read; files may have to be polled")
            continue
        advice = f"`sudo sysctl fs.inotify.{name}={8 * least}`; until then files may have to be polled"
        yield _measured("inotify", found >= least, f"{name} is {found}", advice)


def _disk(folder: Path) -> Check:
    advice = "free some space, or set workspace.runs to a larger disk"
    if disk_problem := disk_problem_of(folder):
        return Check("disk", Health.WRONG, disk_problem, advice)
    free = shutil.disk_usage(folder).free
    return _measured("disk", free >= FREE_BYTES, f"{free / 1e9:.1f} GB are free in {folder}", advice)


def _memory() -> Check:
    free, all_of_it = free_memory(), machine_memory()
    advice = "end other programs, or run fewer agents and grades at once (agents.count, grader.slots)"
    text = f"{free / 1e9:.1f} of {all_of_it / 1e9:.1f} GB are free"
    return _measured("memory", free >= FREE_MEMORY * all_of_it, text, advice)


def _open_files() -> Check:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    advice = f"`ulimit -n {min(4096, hard) if hard > 0 else 4096}` for large fleets"
    return _measured("files", soft >= FILES, f"a process may have {soft} open", advice)


def _prices() -> Check:
    if find_spec("genai_prices") is not None:
        return Check("prices", Health.WELL, "genai-prices is installed")
    text = "unknown, except for programs that report their own cost"
    return Check("prices", Health.ABSENT, text, f"state agents.prices, or `{extras.installs('prices')}`")


def _search() -> Check:
    if missing := missing_library():
        text = f"{missing} is not installed, without which the built-in agent cannot search"
        return Check("search", Health.ABSENT, text, f"`{extras.installs('search')}`")
    return Check("search", Health.WELL, "scipy and cma are installed")


def _program(name: str, wanted: list[Assignment]) -> list[Check]:
    """Check whether an agent program is installed, its version, and its login or key. `wanted`: the task's assignments
    for this program."""
    runtime = registry.find(name, wanted[0].options if wanted else {})
    assert isinstance(runtime, AgentProgram)
    problems = [problem for part in wanted for problem in registry.check(name, part.options, part.model)]
    if problems := problems or runtime.check():
        problem, _, how = problems[0].removeprefix(f"{runtime.program}: ").partition("; ")
        return [Check(name, Health.WRONG if wanted else Health.ABSENT, problem, how)]
    version = _version(runtime)
    text = version or "it does not say its version"
    if not runtime.verified_version:
        text += "; unverified: Coral follows its documentation, and was never tried with it"
        advice = f"`coral doctor --ping {name}` tries one prompt"
        return [Check(name, Health.NOTE, text, advice), _login(runtime, wanted)]
    if runtime.verified_version not in version:
        text += f"; Coral was tried with {runtime.verified_version}"
    return [Check(name, Health.WELL, text), _login(runtime, wanted)]


def _version(runtime: AgentProgram) -> str:
    """Return the version that the program prints, run in the environment of a launch with its state in a temporary
    folder."""
    with tempfile.TemporaryDirectory(prefix="coral-doctor-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        spec = LaunchSpec(agent="doctor", launch=1, session=None, clone=folder, state=folder, run_root=folder)
        env = launch_environment(environment.base(), runtime.command(spec))
        found = programs.on_path(runtime.program)
        return _version_line([*runtime.executable(found), "--version"], env) if found else ""


def _login(runtime: AgentProgram, wanted: list[Assignment]) -> Check:
    name = f"{runtime.name} login"
    if found := runtime.login():
        return Check(name, Health.WELL, found)
    if not runtime.login_places:
        return Check(name, Health.NOTE, "unknown: Coral does not know where it is", runtime.how_to_log_in)
    state = Health.WRONG if wanted and runtime.missing_login() else Health.NOTE
    return Check(name, state, f"none was found; looked for: {runtime.login_places}", runtime.how_to_log_in)


def _of_the_task(assignment: Assignment) -> Check:
    if problems := registry.check(assignment.runtime, assignment.options, assignment.model):
        return Check(assignment.runtime, Health.WRONG, problems[0], "see agents in task.yaml")
    return Check(assignment.runtime, Health.WELL, "can be started")


def _version_line(argv: list[str], env: Mapping[str, str]) -> str:
    """Return the first line with a version that a program prints, on standard output or else on standard error; if no
    line has one, its first line: some programs print warnings and news first. Empty if the program fails or takes
    longer than ANSWER_SECONDS."""
    try:
        child = subprocess.Popen(
            argv,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError:
        return ""
    try:
        printed, errors = child.communicate(timeout=ANSWER_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        return ""
    if child.returncode != 0:
        return ""
    texts = (printed, errors)
    lines = [line for text in texts for line in text.decode("utf-8", "replace").split("\n") if line.strip()]
    versions = (line for line in lines if _VERSION.search(line))
    return one_line(next(versions, lines[0] if lines else ""), 80)
