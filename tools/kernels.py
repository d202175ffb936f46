"""Start a kernel again that lost its port.

A kernel is told five free ports and binds them a second later. Another process may have taken one
by then; the kernel dies before any cell has run, and a fresh start on other ports mends it.
"""

KERNEL_NOT_STARTED = "Kernel died before replying to kernel_info"
"""What nbclient says of such a kernel."""

KERNEL_STARTS = 3
"""How often a kernel is started before its death is taken for an error."""
