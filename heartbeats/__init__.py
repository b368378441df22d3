"""When to step in and what to say; signs of life. `Pulse` gives long work of your own signs of life."""

TYPE_CHECKING = False  # as in typing, which few importers need
if TYPE_CHECKING:
    from heartbeats.pulse import Pulse

__all__ = ["Pulse"]


def __getattr__(name: str) -> object:
    """Most modules of the package need no threads and no sockets."""
    if name == "Pulse":
        from heartbeats.pulse import Pulse

        return Pulse
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
