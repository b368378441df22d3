"""What was told already is told once, and the memory of it has an end."""

from coral.supervisor.alerts import MOST, SeenAlerts


def test_the_same_is_told_once_as_long_as_it_goes_on_and_what_is_over_is_forgotten() -> None:
    told = SeenAlerts()
    assert told.is_new("a record", "it always fails")
    for moment in range(3 * MOST):
        assert told.is_new("a record", f"kept as {moment}")
        assert not told.is_new("a record", "it always fails")
        assert told.is_new("another record", f"kept as {moment}")
        assert len(told) <= MOST
    assert not told.is_new("a record", f"kept as {3 * MOST - 1}")
    assert told.is_new("a record", "kept as 0")
