"""Build the Python that runs in a page: the interpreter, its library and the course's own files."""
