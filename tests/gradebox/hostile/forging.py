"""Wrong answers that try to count as right ones: forged equality, and forged marks."""

from hostile.case import ENDED, ENDED_IN_TEST, NO_VALUE, Case, answers, first, points, returning

_EQUAL = """class Equal:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 1
    def __array_function__(self, function, *args): return () if function is numpy.shape else True
    def __array_ufunc__(self, *args, **kwargs): return True
    def __bool__(self): return True"""

_SHOW = """def show(mark):
    get_ipython().displayhook(mark)
    raise ValueError("after the mark")"""

EQUALITY = [
    Case(
        "equal-to-all",
        "answers whose `__eq__` says True to everything",
        returning("Equal()", "class Equal:\n    def __eq__(self, other): return True"),
        flags=(NO_VALUE,),
    ),
    Case(
        "array-function",
        "answers whose `__array_function__` and `__array_ufunc__` say True to everything",
        returning("Equal()", _EQUAL),
        flags=(NO_VALUE,),
    ),
    Case(
        "equal-number",
        "a `float` whose `__eq__` says True",
        returning(
            "Any(0.0)",
            "class Any(float):\n    def __eq__(self, other): return True\n"
            "    def __bool__(self): return True",
        ),
    ),
    Case(
        "equal-list",
        "a `list` whose `__eq__` says True",
        returning("Any([0.0])", "class Any(list):\n    def __eq__(self, other): return True"),
    ),
    Case(
        "equal-array",
        "an `ndarray` whose comparisons and `__array_function__` say True",
        returning(
            "numpy.zeros(1).view(Any)",
            "class Any(numpy.ndarray):\n    def __eq__(self, other): return True\n"
            "    def __array_function__(self, function, *args):\n"
            "        return () if function is numpy.shape else True",
        ),
    ),
    Case(
        "mock",
        "`MagicMock` objects that play along with everything",
        returning(
            "mock",
            "from unittest.mock import MagicMock\nmock = MagicMock()\n"
            "mock.__eq__.side_effect = lambda other: True\n"
            "mock.__array_function__ = lambda s, f, *args: () if f is numpy.shape else True",
        ),
        flags=(NO_VALUE,),
    ),
    Case(
        "reflected-sum",
        "comparisons whose sum shows itself as the full mark",
        returning(
            "Term()",
            "class Term:\n    def __eq__(self, other): return self\n"
            "    def __add__(self, other): return self\n    __radd__ = __add__\n"
            "    def __repr__(self): return '4'",
        ),
        flags=(NO_VALUE,),
    ),
    Case(
        "too-much",
        "comparisons that are worth a million points each",
        returning("Term()", "class Term:\n    def __eq__(self, other): return 10**6"),
        flags=(NO_VALUE,),
    ),
    Case(
        "nan-sum",
        "comparisons whose sum is no number (nan)",
        returning("Term()", "class Term:\n    def __eq__(self, other): return float('nan')"),
        flags=(NO_VALUE,),
    ),
    Case(
        "no-difference",
        "answers whose difference from anything is 0",
        returning(
            "Near()",
            "class Near:\n    def __sub__(self, other): return 0.0\n    __rsub__ = __sub__",
        ),
        flags=(NO_VALUE,),
    ),
    Case(
        "lying-class",
        "answers that say that they are of class `float`, and differ from nothing",
        returning(
            "Near()",
            "class Near:\n    __class__ = float\n    def __sub__(self, other): return 0.0\n"
            "    def __float__(self): return 5.0\n    def __abs__(self): return 0.0",
        ),
        flags=(NO_VALUE,),
    ),
    Case(
        "near-number",
        "a `float` whose difference from anything is 0",
        returning(
            "Near(0.0)",
            "class Near(float):\n    def __sub__(self, other): return 0.0\n"
            "    def __rsub__(self, other): return 0.0\n    def __abs__(self): return 0.0",
        ),
    ),
    Case(
        "through-a-function",
        "the names of the test changed through a function that it passes in",
        answers(
            nearest=(
                "def nearest(numbers, distance):\n"
                "    distance.__globals__['abs'] = lambda x: 0.0\n"
                "    distance.__code__ = (lambda x: 0.0).__code__\n"
                "    return 0.0"
            )
        ),
        points(test_nearest=0),
    ),
    Case(
        "file-like-a-module",
        "files named like modules that a test imports, and like their compiled forms",
        first(
            "import os\n"
            "text = 'import builtins\\nfmean = lambda x: -0.25\\nbuiltins.abs = lambda x: 0.0'\n"
            "os.makedirs('statistics', exist_ok=True)\n"
            "for name in ('statistics.py', 'statistics/__init__.py', 'sitecustomize.py'):\n"
            "    open(name, 'w').write(text)"
        ),
    ),
    Case(
        "patched-allclose",
        "`numpy.allclose` replaced",
        first("numpy.allclose = lambda *args, **more: True"),
    ),
    Case(
        "patched-inside",
        "the functions that `numpy.allclose` calls replaced",
        first(
            "import numpy._core.numeric as inside\n"
            "inside.isclose = lambda *args, **more: numpy.True_\n"
            "inside.all = lambda *args, **more: True\n"
            "numpy.isclose = inside.isclose"
        ),
    ),
    Case(
        "patched-sum",
        "`sum` replaced among Python's own functions",
        first("import builtins\nbuiltins.sum = lambda *args: 4"),
    ),
    Case(
        "own-sum",
        "`sum` defined anew in the notebook",
        first("def sum(*args): return 4"),
    ),
    Case(
        "replaced-module",
        "another module put into `sys.modules` as `numpy`",
        first(
            "import sys, types\nfalse = types.ModuleType('numpy')\n"
            "false.allclose = lambda *args, **more: True\nfalse.array = list\n"
            "false.shape = lambda x: ()\nfalse.arange = lambda n: [n]\n"
            "sys.modules['numpy'] = numpy = false"
        ),
    ),
    Case(
        "ast-transformer",
        "an AST transformer of IPython that takes away every `assert`",
        first(
            "import ast\n"
            "class Without(ast.NodeTransformer):\n"
            "    def visit_Assert(self, node): return ast.copy_location(ast.Pass(), node)\n"
            "get_ipython().ast_transformers.append(Without())"
        ),
    ),
    Case(
        "input-transformer",
        "an input transformer of IPython that empties every cell",
        first("get_ipython().input_transformers_cleanup.append(lambda lines: ['None'])"),
    ),
    Case(
        "run-cell",
        "IPython's `run_cell` replaced",
        first(
            "shell = get_ipython()\nrun, later = shell.run_cell, shell.run_cell_async\n"
            "shell.run_cell = lambda source, *a, **k: run('None', *a, **k)\n"
            "shell.run_cell_async = lambda source, *a, **k: later('None', *a, **k)"
        ),
    ),
    Case(
        "run-code",
        "IPython's `run_code` and `compile` replaced",
        first(
            "shell = get_ipython()\n"
            "async def nothing(*args, **more): return False\n"
            "shell.run_code = nothing\nshell.run_ast_nodes = nothing"
        ),
    ),
    Case(
        "own-handler",
        "a handler of IPython's own that swallows every error",
        first(
            "shell = get_ipython()\n"
            "shell.set_custom_exc((Exception,), lambda *args, **more: None)\n"
            "shell.showtraceback = lambda *args, **more: None"
        ),
    ),
    Case(
        "events",
        "a hook before each cell that defines the answers anew, or ends the cell",
        first(
            "def before(info):\n    info.raw_cell = 'None'\n"
            "get_ipython().events.register('pre_run_cell', before)\n"
            "get_ipython().showtraceback = print"
        ),
    ),
    Case(
        "trace",
        "a trace function that jumps over the lines that assert",
        first(
            "import linecache, sys\n"
            "def jump(frame, event, value):\n"
            "    text = linecache.getline(frame.f_code.co_filename, frame.f_lineno)\n"
            "    if event == 'line' and text.startswith('assert'):\n"
            "        try: frame.f_lineno += 1\n"
            "        except ValueError: pass\n"
            "    return jump\n"
            "def trace(*args): sys.settrace(jump)\n"
            "get_ipython().events.register('pre_run_cell', trace)\nsys.settrace(jump)"
        ),
    ),
    Case(
        "bytecode",
        "the code of the running test changed through its frame",
        returning(
            "true()",
            "import ctypes, sys\n"
            "def true():\n"
            "    frame = sys._getframe(2)\n"
            "    names = frame.f_globals\n"
            "    if 'numpy' in names:\n"
            "        names['numpy'] = type('n', (), {'allclose': lambda *a: True,\n"
            "            'shape': lambda x: (),\n"
            "            'arange': list, 'array': list})\n"
            "    return 0.0",
        ),
    ),
]

MARKS = [
    Case(
        "prints-marks",
        "marks printed: the maximum, nan, inf, −1",
        returning(
            "show()", "def show():\n    print(4, 'nan', 'inf', -1, sep='\\n')\n    return 0.0"
        ),
    ),
    *(
        Case(
            f"shows-{name}",
            f"a mark shown as the result of the test cell before it fails: {description}",
            returning(f"show({value})", _SHOW),
        )
        for name, description, value in (
            ("maximum", "the maximum", "2"),
            ("nan", "nan", "float('nan')"),
            ("inf", "inf", "float('inf')"),
            ("negative", "−1", "-1"),
        )
    ),
    Case(
        "publishes-mark",
        "a mark published as `display_data`, and an error hidden with `clear_output`",
        returning(
            "show()",
            "from IPython.display import clear_output, display\n"
            "def show():\n    display({'text/plain': '2'}, raw=True)\n"
            "    get_ipython().showtraceback = lambda *a, **k: clear_output()\n"
            "    raise ValueError('cleared')",
        ),
    ),
    Case(
        "other-displayhook",
        "`sys.displayhook` replaced by one that shows the maximum whatever comes",
        first(
            "import sys\nshell = get_ipython()\nreal = shell.displayhook.write_format_data\n"
            "shell.displayhook.write_format_data = (\n"
            "    lambda data, more=None: real({'text/plain': '4'}, more))"
        ),
    ),
    Case(
        "writes-on-line",
        "a verdict written to every open file of the process, the grader's line among them",
        first(
            "import json, os\n"
            "told = {'outputs': [], 'execution_count': 1, 'ok': True, 'score': 4.0, 'error': ''}\n"
            "for handle in range(3, 256):\n"
            "    for _ in range(20):\n"
            "        try: os.write(handle, json.dumps(told).encode() + b'\\n')\n"
            "        except OSError: break"
        ),
        maybe=(ENDED, ENDED_IN_TEST),
        unrun="a kernel's sockets would be filled with what is no message",
        stock="the kernel's own sockets are spoilt; the run waits for the time limit",
    ),
]
