"""Heartbeats: when to intervene and what to say; and beats, the signs of life. `Pulse` writes beats for long work of
your own."""

TYPE_CHECKING = False  # as in typing, which few importers need
if TYPE_CHECKING:
    from heartbeats.pulse import Pulse

__all__ = ["Pulse"]


def __getattr__(name: str) -> object:
    """Import `Pulse` on demand: most modules of the package need no threads and no sockets."""
    if name == "Pulse":
        from heartbeats.pulse import Pulse

        return Pulse
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
