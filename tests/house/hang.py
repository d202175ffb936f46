"""How long tests wait for what comes at once on an idle machine."""

HANG = 1800
"""Seconds after which something hangs, however slow and busy the machine is."""
