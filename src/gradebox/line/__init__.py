"""The line between two processes that distrust each other, and the stand-ins at its two ends."""
