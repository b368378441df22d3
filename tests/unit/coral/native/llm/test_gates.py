"""The gates that come along, and how decisions are put together."""

import sys

import pytest

from coral.native.llm import gates, plugins
from coral.native.llm.conversation import ToolCall
from coral.native.llm.gates import DeferredCall, GateSignal, RefusedCall
from coral.native.llm.settings import LlmOptions


def made(name: str, arguments: str = "{}") -> ToolCall:
    return ToolCall(id="c", name=name, arguments=arguments)


def signal(options: LlmOptions | None = None, **given: object) -> GateSignal:
    plain = {"depth": 1, "steps": 1, "tokens": 0, "cost": 0.0, "checked": False, "failures": (), "clone": "/c"}
    return GateSignal(**{**plain, **given}, options=options or LlmOptions())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("command", "passes"),
    [
        ("python solve.py > out.txt", True),
        ("/usr/bin/env python x.py 2>/dev/null", True),
        ("cat /c/data.txt", True),
        ("cat /etc/passwd", False),
        ("cat <~/.netrc", False),
        ("ls ../other", False),
        ("echo x >/root/x", False),
        ("cp a --target-directory=/home/x", False),
        ("curl http://example.org", False),
        ("python -m pip install numpy", False),
        ("git push origin main", False),
        ("git diff", True),
        ("echo 'unbalanced", True),
        ("sed -n '/def foo/,/^def/p' f", True),
        ("awk '/x/ {print}' f", True),
        ("grep -rn '/api' .", True),
        ("echo 1 / 2", True),
        ("cat src/../a.py", True),
        ("grep curl notes.md", True),
        ("cat ./a/../../b", False),
        ("cat src/../../a.py", False),
        ("cat /c/../etc/passwd", False),
        ("cd ~ && ls", False),
        ("cd ..; ls", False),
        ("ls ..|head", False),
        ("true;curl x", False),
        ("true\ncurl x", False),
        ("echo $(curl x)", False),
        ("echo `curl x`", False),
        ('echo "$(curl x)"', True),  # a guard against mistakes reads no further
        ("(wget x)", False),
        ("A=1 env B=2 sudo curl x", False),
        ("if curl x; then true; fi", False),
        ("cat $HOME/x", False),
        ("cat ${HOME}/x", False),
        ("pip --quiet install x", False),
        ("uv pip install x", False),
        ("pip list", True),
        ("git -c a=b clone https://example.org/x", False),
        ("git -c http.proxy=x push", False),
        ("git stash push", True),
        ("git log --oneline | head -3 && ls 2>&1", True),
        ("echo a>/etc/x", False),
        ("cat a...b ...", True),
        ("perl -ne 'print if $_ =~ /foo/' f", True),
        ("grep -v '~$' f", True),
        ("git log --format='~%h'", True),
        ("[[ $x =~ ^a ]]", True),
        ("cat ~root/x", False),
        ("rm -rf /", False),
        ("find / -name '*.pem'", False),
        ("tar xf a.tgz -C /", False),
        ("cut -d / -f 1 f", True),
        (f"awk '/{'a' * 300}/' f", True),
        ("timeout 60 curl http://x", False),
        ("timeout 5m pip install x", False),
        ("xargs -n1 curl", False),
        ("uv run pip install x", False),
        ("# don't\ncurl x", False),
    ],
)
def test_commands_stay_inside(command: str, passes: bool) -> None:
    import json

    call = made("run", json.dumps({"command": command}))
    (decision,) = gates.inside(signal(), (call,))
    assert isinstance(decision, ToolCall) == passes


def test_a_command_beside_a_strange_number_is_read() -> None:
    (decision,) = gates.inside(signal(), (made("run", '{"command": "curl x", "seconds": 1e999}'),))
    assert isinstance(decision, RefusedCall)


def test_a_task_may_allow_the_network() -> None:
    call = made("run", '{"command": "curl http://example.org"}')
    (decision,) = gates.inside(signal(LlmOptions(network=True)), (call,))
    assert decision == call


def test_an_attempt_may_take_so_much_and_no_more() -> None:
    for options, over in (
        (LlmOptions(steps_per_attempt=3), {"steps": 4}),
        (LlmOptions(tokens_per_attempt=100), {"tokens": 101}),
        (LlmOptions(money_per_attempt=0.5), {"cost": 0.6}),
    ):
        (passed,) = gates.limits(signal(options), (made("run"),))
        assert passed == made("run")
        refused, submitted = gates.limits(signal(options, **over), (made("run"), made("submit")))
        assert isinstance(refused, RefusedCall)
        assert "submit what you have" in refused.reason
        assert submitted == made("submit")


def test_nothing_is_submitted_before_the_check_passes_where_the_task_says_so() -> None:
    options = LlmOptions(check_first=True)
    (refused,) = gates.check_first(signal(options), (made("submit"),))
    assert isinstance(refused, RefusedCall)
    assert gates.check_first(signal(options, checked=True), (made("submit"),)) == [made("submit")]
    assert gates.check_first(signal(), (made("submit"),)) == [made("submit")]


def test_three_failures_of_one_call_are_enough() -> None:
    call = made("run", '{"command": "x"}')
    failures = ('run {"command": "x"}',) * 2
    assert gates.repetition(signal(failures=failures), (call,)) == [call]
    (refused,) = gates.repetition(signal(failures=failures + failures[:1]), (call,))
    assert isinstance(refused, RefusedCall)


def test_the_first_gate_that_says_no_decides_and_a_broken_one_lets_nothing_pass() -> None:
    def hold(signal, calls):
        return [DeferredCall(call, "later") for call in calls]

    def rename(signal, calls):
        return [made("other") for _ in calls]

    def broken(signal, calls):
        raise KeyError("x")

    one = (made("a"),)
    assert plugins.decide([rename], signal(), one, 0) == made("other")
    assert plugins.decide([rename, hold, broken], signal(), one, 0) == DeferredCall(made("other"), "later")
    assert isinstance(plugins.decide([lambda signal, calls: []], signal(), one, 0), RefusedCall)
    refused = plugins.decide([lambda signal, calls: [True for _ in calls]], signal(), one, 0)
    assert refused == RefusedCall(one[0], "a gate of this task is broken: TypeError: True is no decision")
    refused = plugins.decide([lambda signal, calls: sys.exit("x")], signal(), one, 0)
    assert refused == RefusedCall(one[0], "a gate of this task is broken: SystemExit: x")
    refused = plugins.decide([broken], signal(), one, 0)
    assert isinstance(refused, RefusedCall)
    assert refused.reason == "a gate of this task is broken: KeyError: 'x'"
