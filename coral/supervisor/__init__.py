"""The loop: gather events, decide, write the journal, perform actions."""
