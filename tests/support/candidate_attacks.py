"""What code of a candidate tries, as the body of a Python function each. `known`: what it is told of the machine.

What it returns is in the record. It returns the secret if it has read it, and `known["open"]` where there was nothing
to read.
"""

from trust import Attack, Who

_RESULT = """
import os
path = os.environ.get("CORAL_RESULT") or os.path.dirname(os.environ["TMPDIR"]) + "/result.json"
def write():
    with open(path + ".mine", "w") as file:
        file.write('{"score": 999.0}')
    os.replace(path + ".mine", path)
"""
_JSON = """
import json
dump, dumps = json.dump, json.dumps
def forged(value):
    return {**value, "score": 999.0} if isinstance(value, dict) and "score" in value else value
json.dump = lambda value, *rest, **named: dump(forged(value), *rest, **named)
json.dumps = lambda value, *rest, **named: dumps(forged(value), *rest, **named)
return ""
"""
_RUNNER = """
import sys
runner = sys.modules["coral.grading.runner"]
runner._record = runner._scored = lambda *_: {"score": 999.0}
runner.finite_score = lambda *_: 999.0
return ""
"""
# `yek`: a key of the environment, backwards, or the candidate would find what it was told.
# Whoever has the memory of the result open. Not the supervisor: it has that of other grades, too.
_MEMORY = """
import fcntl, os
for pid in ("self", *([str(os.getppid())] if known["is_behind"] else [])):
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        continue
    for name in names:
        try:
            if "memfd:result" in os.readlink(f"/proc/{pid}/fd/{name}"):
                memory = os.open(f"/proc/{pid}/fd/{name}", os.O_RDWR)
                os.ftruncate(memory, 0)
                os.pwrite(memory, b'{"score": 999.0}', 0)
                fcntl.fcntl(memory, fcntl.F_ADD_SEALS, 15)
        except OSError:
            pass
os._exit(0)
"""
# The score that the grader gives, wherever it stands in the grader's memory.
_SCORES = """
import os, re, struct
honest, forged = struct.pack("d", known["honest"]), struct.pack("d", 999.0)
with open(f"/proc/{os.getppid()}/maps") as maps, open(f"/proc/{os.getppid()}/mem", "r+b", 0) as memory:
    for line in maps:
        first, last, access = re.match("([0-9a-f]+)-([0-9a-f]+) (....)", line).groups()
        if access.startswith("rw"):
            try:
                memory.seek(int(first, 16))
                found = memory.read(int(last, 16) - int(first, 16))
            except (OSError, ValueError):
                continue
            for at in [match.start() for match in re.finditer(re.escape(honest), found)]:
                memory.seek(int(first, 16) + at)
                memory.write(forged)
return ""
"""
_LATER = """
import threading, time
def often():
    for _ in range(200):
        write()
        time.sleep(0.01)
"""
_CHILD = "if os.fork() == 0:\n    os.setsid()\n    often()\n    os._exit(0)\nreturn ''\n"
_THREAD = "threading.Thread(target=often).start()\nreturn ''\n"
_OTHER = """
if os.path.lexists(path):
    os.remove(path)
{}
if "CORAL_RESULT" in os.environ:
    os._exit(0)
return ""
"""
# Without anything that it began with, it changes its id a few times: one of them may have been seen before. The pipe is
# closed by its last exec.
_AGAIN = "import os, sys, time\nos.set_inheritable(int(sys.argv[1]), False)\nfor _ in range(3):\n"
_AGAIN += "    if os.fork(): os._exit(0)\n    time.sleep(0.1)\nos.execve('/bin/sleep', ['sleep', sys.argv[2]], {})\n"
_DAEMON = f"""
import os, resource, sys
reading, writing = os.pipe()
if os.fork() == 0:
    try:
        os.setsid()
        try: resource.prlimit(0, 10, (resource.getrlimit(10)[1],) * 2)
        except OSError: pass
        if OUTSIDE:
            open(known["group"] + "/cgroup.procs", "w").write("0")
        if os.fork() == 0:
            os.set_inheritable(writing, True)
            words = ["python", "-I", "-S", "-c", {_AGAIN!r}, str(writing), known["sleep"] + str(OUTSIDE)]
            os.execve(sys.executable, words, {{}})
    finally:
        os._exit(0)
os.close(writing)
os.read(reading, 1)
os.wait()
return ""
"""
# A file of the run, by a path from where it works upwards.
_UPWARDS = """
import pathlib
def found(name):
    return next(parent / name for parent in pathlib.Path.cwd().parents if (parent / name).exists())
"""
_ENVIRONMENTS = """
import os
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        if known["yek"][::-1].encode() in open(f"/proc/{pid}/environ", "rb").read():
            return known["open"]
    except OSError:
        pass
return ""
"""
_FILES = """
import os
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        if any("ledger.sqlite" in os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")):
            return known["open"]
    except OSError:
        pass
return ""
"""
_CONNECT = "import socket\nsocket.create_connection(('127.0.0.1', known['port']), 5)\nreturn known['open']\n"
# Where the kernel has no such sockets, those of the network stand for them.
_TO_THE_HOST = f"""
import socket
try:
    socket.socket(socket.AF_VSOCK).close()
except OSError as error:
    if error.errno != 97:
        raise
{_CONNECT}
"""
_ROOTS = "text = open('/etc/shadow').read()\nreturn known['open'] if text else ''\n"
_TERMINAL = "import os\nos.close(os.open(known['terminal'], os.O_RDWR | os.O_NOCTTY))\nreturn known['open']\n"
_RIGHTS = "status = open('/proc/self/status').read()\nreturn known['open'] if 'NoNewPrivs:\\t0' in status else ''\n"

_SCORE, _PLACE = "read the hidden data that its grader reads; write", "write a file in the place of a function's result"
_KINDS, _VOID = "give a command a result", "have its grade count for nothing"
_YOURS, _ENVIRONMENT, _LOADED = "read your files and keys", "read the environment of", "gain rights by a program"
_RULES = "change the grader, its data, records"


def _reads(name: str) -> str:
    return f"return open(known[{name!r}]).read()\n"


def _writes(name: str) -> str:
    return f"open(known[{name!r}], 'a').close()\nreturn known['open']\n"


def _puts(name: str, text: str) -> str:
    return f"{_UPWARDS}with open(found({name!r}), 'a') as file:\n    file.write({text!r})\nreturn known['open']\n"


_OTHERS = {
    "not a number": "open(path, 'w').write('{\"score\": NaN}')",
    "an infinite number": "open(path, 'w').write('{\"score\": 1e999}')",
    "more than is read": "open(path, 'w').write(' ' * 4_000_000 + '{\"score\": 999}')",
    "a pipe": "os.mkfifo(path)",
    "a folder": "os.mkdir(path)",
    "a link": "os.symlink(known['forged'], path)",
}
# What a function and a command grader have in common: it runs in the process that has the result.
_BOTH = {
    "changes how a result is written": Attack(_SCORE, _JSON),
    "reads the grader's variables": Attack(_SCORE, "import sys\nreturn str(sys._getframe(1).f_locals['hidden'])\n"),
    "reads the hidden file": Attack(_SCORE, f"{_UPWARDS}return found('grader/hidden.txt').read_text()\n"),
    "prints a result": Attack(_PLACE, "print('{\"score\": 999.0}', flush=True)\nreturn ''\n"),
    "reads the task's folder": Attack(_YOURS, _reads("task")),
    "reads another run": Attack(_YOURS, _reads("other")),
    "reads a login": Attack(_YOURS, _reads("login")),
    "reads an agent's state": Attack(_YOURS, f"{_UPWARDS}return found('workspace/state/agent-1/secret').read_text()\n"),
    "reads keys of its own": Attack("read keys: its own", "import os\nreturn os.environ.get('A_KEY', '')\n"),
    "reads keys of others": Attack(_ENVIRONMENT, _ENVIRONMENTS),
    "sees the supervisor's open files": Attack(_ENVIRONMENT, _FILES),
    "signals a process": Attack("signal other", "import os\nos.kill(known['pid'], 0)\nreturn known['open']\n"),
    "reaches a port": Attack("the network", _CONNECT),
    "reaches the host of a virtual machine": Attack("the network", _TO_THE_HOST),
    "reads what only root may": Attack("read what only root may read", _ROOTS),
    "reads what you type": Attack("read and write your terminals", _TERMINAL),
    "reaches another's memory by name": Attack("shared memory of others by name", _reads("memory")),
    "can gain rights": Attack(_LOADED, _RIGHTS),
    "changes what Python loads": Attack(_LOADED, _writes("loaded")),
    "changes a .pth file": Attack(_LOADED, _writes("pth")),
    "changes what every program loads": Attack(_LOADED, _writes("ld")),
    "writes the user's home": Attack("change your files", "open(known['mine'], 'a').close()\nreturn ''\n", "home/mine"),
    "changes the grader": Attack(_RULES, _puts("grader/grade.py", "\n#"), alert="private/grader/grade.py"),
    "forges a record": Attack(
        _RULES,
        f"{_UPWARDS}(found('attempts/000000.json').parent / '000999.json').write_text('{{}}')\nreturn known['open']\n",
        alert="a record of #999",
    ),
    "kills its process": Attack(_VOID, "import os\nos.kill(os.getpid(), 9)\n"),
    "kills its group": Attack(_VOID, "import os\nos.killpg(0, 9)\n"),
    "crashes it": Attack(_VOID, "import ctypes\nctypes.string_at(0)\n"),
    "raises": Attack(_VOID, "raise RuntimeError('mine')\n"),
    "claims a full disk": Attack(_VOID, "raise OSError(28, 'No space left on device')\n"),
    "claims that its quota is used up": Attack(_VOID, "raise OSError(122, 'Disk quota exceeded')\n"),
    "claims that memory ran out": Attack(_VOID, "raise MemoryError\n"),
    "leaves a daemon": Attack("leave a process behind that gives up", _DAEMON.replace("OUTSIDE", "0")),
    "leaves a daemon outside its group": Attack("leave a process behind that also", _DAEMON.replace("OUTSIDE", "1")),
}
FUNCTION = {
    **_BOTH,
    "changes the runner": Attack(_SCORE, _RUNNER),
    "writes the memory of the result": Attack(_SCORE, _MEMORY),
    "writes a result as it exits": Attack(_PLACE, f"{_RESULT}import atexit\natexit.register(write)\nreturn ''\n"),
    "writes a result and leaves": Attack(_PLACE, f"{_RESULT}write()\nos._exit(0)\n"),
    "writes a result and exits": Attack(_PLACE, f"{_RESULT}write()\nraise SystemExit(0)\n"),
    "writes a result later": Attack(_PLACE, _RESULT + _LATER + _CHILD),
    "writes a result from a thread": Attack(_PLACE, _RESULT + _LATER + _THREAD),
    **{f"has {what} for a result": Attack(_PLACE, _RESULT + _OTHER.format(act)) for what, act in _OTHERS.items()},
}
COMMAND = {
    **_BOTH,
    "writes a result as it exits": Attack(_SCORE, f"{_RESULT}import atexit\natexit.register(write)\nreturn ''\n"),
    "writes a result and leaves": Attack(_SCORE, f"{_RESULT}write()\nos._exit(0)\n"),
    "writes a result and exits": Attack(_SCORE, f"{_RESULT}write()\nraise SystemExit(0)\n"),
    **{f"has {what} for a result": Attack(_KINDS, _RESULT + _OTHER.format(act)) for what, act in _OTHERS.items()},
}
_RESULT_OF, _OTHERWISE, _DATA = (
    "write the grade's result through",
    "write the grade's result otherwise",
    "read hidden data, other files",
)
# Behind run_candidate; test_candidate has what it reaches besides.
BEHIND = {
    "changes how a result is written": Attack(_OTHERWISE, _JSON),
    "writes the grader's memory": Attack(_RESULT_OF, _SCORES),
    "writes the memory of the result": Attack(_OTHERWISE, _MEMORY),
    "prints a result": Attack(_OTHERWISE, "print('{\"score\": 999.0}', flush=True)\nreturn ''\n"),
    "reads the grader's variables": Attack(_OTHERWISE, _BOTH["reads the grader's variables"].act),
    "reads the hidden file": Attack(_DATA, _BOTH["reads the hidden file"].act),
    "reads keys of its own": Attack("read keys: its own environment", _BOTH["reads keys of its own"].act),
    "reads keys of others": Attack("read keys: the environment of", _ENVIRONMENTS),
    "kills the grader": Attack("have its grade count for nothing", "import os\nos.kill(os.getppid(), 9)\nreturn ''\n"),
}
_FILES_OF_OTHERS, _OUTSIDE, _KERNEL = (
    "read hidden data, other files",
    "write its own tree, or elsewhere",
    "the kernel's keys",
)
_ROOT = "mount, make devices, change"
# What one candidate tries in one call, by the names that test_candidate has for it: their rows.
SPIED = {
    "hidden data": _FILES_OF_OTHERS,
    "its folder": _FILES_OF_OTHERS,
    "environment": "read keys: its own environment",
    "environment of the grader": "read keys: the environment of",
    "environment of the supervisor": "read keys: the environment of",
    "descriptors": "read keys: the environment of",
    "kill": "signals to other processes",
    "abstract socket": "services by an abstract socket",
    "loopback": "the network",
    "socket to the host": "the network",
    "socket with a path": "services by a socket with a path",
    "write into its tree": _OUTSIDE,
    "write elsewhere": _OUTSIDE,
    "size of a file": "see names, sizes and times",
    "mode of a file": "change times and modes",
    "other processes": "see other processes",
    "limits of another process": _KERNEL,
    "keys of the kernel": _KERNEL,
    "shared memory": _KERNEL,
    "core_pattern": _ROOT,
    "mount": _ROOT,
    "device": _ROOT,
    "more disk": "more disk in all",
}
# Rows that are shown by tests of their own, at each level.
_CANDIDATE, _LIMITS = "integration/coral/grader/test_candidate.py", "integration/coral/grading/test_limits.py"
ELSEWHERE = {
    (Who.GRADED, "use up the processes"): f"{_LIMITS}::test_a_grade_over_a_limit_is_ended_and_its_candidate_has_failed",
    (Who.BEHIND, "more memory, processor time"): f"{_CANDIDATE}::test_time_and_output_have_limits",
    (Who.BEHIND, "start processes without end"): f"{_CANDIDATE}::test_processes_without_end_end_with_its_time",
    (
        Who.BEHIND,
        "leave a process behind",
    ): f"{_CANDIDATE}::test_what_a_candidate_leaves_ends_with_it_or_with_the_grade",
    (Who.BEHIND, "leave a file"): f"{_CANDIDATE}::test_what_a_candidate_leaves_where_everybody_may_write",
}
