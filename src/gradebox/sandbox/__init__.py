"""The sandbox: what seals a process, what it sees, and the time that it is given."""
