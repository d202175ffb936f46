"""What a call does besides returning a value: files, warnings, logs and patches follow it."""
