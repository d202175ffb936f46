"""Grade on several machines."""
