"""Grade on many machines."""
