"""The supervisor's decisions: pure, `decide(fleet, events, now, rules) -> (fleet, actions)`."""
