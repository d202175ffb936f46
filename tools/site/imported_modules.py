"""Which modules a piece of code imports."""

import ast


def named(source: str, at_import: bool = False) -> list[str]:
    """Return the modules, and what may be modules, that the statements of a source import.

    With ``at_import``, only those that are imported as soon as the source itself is.
    """
    tree, names = ast.parse(source), list[str]()
    for node in tree.body if at_import else ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return list(dict.fromkeys(names))
