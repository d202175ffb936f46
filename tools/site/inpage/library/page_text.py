"""What the text of a page says of its cells: numbers as they are set, and statements that hold."""

import ast
import re

MARK = "@verdict"
"""Begins a line in which a cell prints whether a statement holds."""


def typeset(number: str) -> str:
    """Return a formatted number as a text shows it.

    >>> typeset("-1.5e-07"), typeset("2e+05, 3"), typeset("68%").split()
    ('−1.5·10⁻⁷', '2·10⁵, 3', ['68', '%'])
    """
    raised = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    powers = re.sub(
        r"(?<=\d)e([+-]\d+)", lambda power: f"·10{str(int(power[1])).translate(raised)}", number
    )
    spaced = re.sub(r"(?<=\d)%", "\u00a0%", powers)
    return re.sub(r"(?<![\w)])-(?=\.?\d)", "−", spaced)


class _Printed(ast.NodeTransformer):
    """Turns each assertion into a line that says whether it holds, with its sentence."""

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        holds = ast.Call(ast.Name("bool", ast.Load()), [node.test], [])
        arguments = [ast.Constant(MARK), holds, node.msg or ast.Constant("what the text says")]
        return ast.Expr(ast.Call(ast.Name("print", ast.Load()), arguments, []))


def stated(source: str) -> ast.Module:
    """Return a cell of assertions as one that prints of each whether it holds."""
    tree: ast.Module = _Printed().visit(ast.parse(source))
    return ast.fix_missing_locations(tree)


def statements(text: str) -> dict[str, bool]:
    r"""Return of each sentence that such cells have printed whether it holds, each time.

    >>> statements("@verdict False all converge\n@verdict True all converge")
    {'all converge': False}
    """
    lines = [line.split(maxsplit=2) for line in text.split("\n")]
    return {line[2]: [MARK, "False", line[2]] not in lines for line in lines if line[:1] == [MARK]}
