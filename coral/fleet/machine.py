"""The state of the machine: what it has too little of, and whether it stood still or its time of day was set.

None of this moves a deadline: all deadlines are on the run's clock. The operator is told of it, and screens show it as
long as it matters.
"""

from coral.fleet import events as on
from coral.fleet.policy import WORTH_AN_ALERT
from coral.fleet.transaction import Transaction


def handle(transaction: Transaction, event: on.WatchFailed | on.MachineChecked | on.Slept | on.ClockSet) -> None:
    match event:
        case on.WatchFailed(reason=reason):
            text = f"files cannot be watched ({reason}); polling continues" if reason else "files are watched again"
            transaction.log("warning" if reason else "machine", text)
            _set_short(transaction, on.Shortage.WATCHES, is_short=bool(reason))
        case on.MachineChecked(short=short, free=free, load=load):
            transaction.log("machine", f"{100 * free:.0f} % of the memory is free, {load:.1f} programs want each core")
            for shortage in (on.Shortage.MEMORY, on.Shortage.LOAD):
                _set_short(transaction, shortage, is_short=shortage in short)
        case on.Slept(seconds=seconds):
            transaction.set_run(slept_at=transaction.clock)
            _report(transaction, f"the machine, or the supervisor, stood still for {seconds:.0f} seconds", seconds)
        case on.ClockSet(seconds=seconds):
            transaction.set_run(clock_set_at=transaction.clock)
            way = "forward" if seconds > 0 else "back"  # mutants: equivalent, less is told of nobody
            _report(transaction, f"the time of day was set {way} by {abs(seconds):.0f} seconds", abs(seconds))


def _set_short(transaction: Transaction, shortage: on.Shortage, *, is_short: bool) -> None:
    others = tuple(other for other in transaction.run.short if other is not shortage)
    transaction.set_run(short=(*others, *((shortage,) if is_short else ())))


def _report(transaction: Transaction, text: str, seconds: float) -> None:
    if seconds >= WORTH_AN_ALERT:
        transaction.alert(f"{text}; no deadline has moved")
    else:
        transaction.log("machine", text)
