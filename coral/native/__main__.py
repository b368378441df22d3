"""`python -P -m coral.native`: handles an interrupt from its first line on, before anything else is imported."""

from coral.native.interrupt import on_interrupt

on_interrupt()

from coral.native.main import main  # noqa: E402  the handler is set first

raise SystemExit(main())
