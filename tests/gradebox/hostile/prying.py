"""Wrong answers that look for the right ones: in frames, in the history, on the disk, elsewhere."""

from hostile.case import ENDED, ENDED_IN_TEST, NO_VALUE, Case, answers, first, points, returning

_FIND = (
    "import re\n"
    "calls = []\n"
    "def find(texts):\n"
    "    for text in texts:\n"
    "        print(text)\n"
    "        found = re.findall(r', ([0-9.]+)\\)$', text, re.MULTILINE)\n"
    "        if found:\n"
    "            calls.append(text)\n"
    "            return float(found[(len(calls) - 1) % len(found)])\n"
    "    return 0.0\n"
)

_READ = (
    "from pathlib import Path\n"
    "def read(*patterns):\n"
    "    for pattern in patterns:\n"
    "        for path in sorted(Path().resolve().parents[2].glob(pattern)):\n"
    "            text = path.read_bytes().decode('utf-8', 'replace')\n"
    "            print(path, len(text), text[text.find('kes' + 'trel') - 20:][:40])\n"
)

READING = [
    Case(
        "frames",
        "the expected value read from the frames of the test that calls",
        returning(
            "look()",
            _FIND + "import sys\n"
            "def look():\n"
            "    frame, texts = sys._getframe(1), []\n"
            "    while frame := frame.f_back:\n"
            "        texts += [str(frame.f_locals), repr(frame.f_code.co_consts)]\n"
            "    try:\n"
            "        import inspect\n"
            "        texts += [''.join(one.code_context or []) for one in inspect.stack()]\n"
            "    except Exception: pass\n"
            "    return find(reversed(texts))",
        ),
    ),
    Case(
        "history",
        "the test read from IPython's history of the cells, `In`",
        returning("find(In[::-1])", _FIND),
    ),
    Case(
        "objects",
        "the test looked for among all objects of the process",
        returning(
            "look()",
            _FIND + "import gc\n"
            "def look():\n"
            "    found = []\n"
            "    for one in gc.get_objects():\n"
            "        if type(one) is dict:\n"
            "            found += [v for v in list(one.values())\n"
            "                if type(v) is str and 'assert numpy' in v]\n"
            "    return find(found)",
        ),
    ),
    Case(
        "own-notebook",
        "the tests read from the notebook file in the folder",
        first(_READ + "read('*/*/*/*.ipynb')\nprint([p.name for p in Path().iterdir()])"),
    ),
    Case(
        "gradebook-read",
        "the tests read from the gradebook",
        first(_READ + "read('gradebook.db', '.gradebook/**/*')"),
    ),
    Case(
        "source-read",
        "the tests and the answers read from the instructor's folder",
        first(_READ + "read('source/**/*.ipynb', 'release/**/*.ipynb', 'lib/**/*.py')"),
    ),
    Case(
        "neighbour-read",
        "the answers copied from another student's submission",
        first(
            "import json\nfrom pathlib import Path\n"
            "names = {}\n"
            "for path in Path().resolve().parents[2].glob('submitted/*honest*/*/*.ipynb'):\n"
            "    for cell in json.loads(path.read_text())['cells']:\n"
            "        if cell['id'] in ('squares', 'means', 'running', 'digit', 'nearest'):\n"
            "            exec(''.join(cell['source']), globals(), names)\n"
            "def later(info):\n    globals().update(names)\n"
            "get_ipython().events.register('pre_run_cell', later)"
        ),
    ),
    Case(
        "imports-reference",
        "the reference implementation imported",
        answers(
            squares="from reference.numbers import sum_of_squares",
            means="from reference.numbers import means",
        ),
        scores=points(test_squares=0.0, test_means=0.0),
        outputs={"squares": "cannot be imported"},
    ),
    Case(
        "reads-reference",
        "the file of the reference implementation read and executed",
        first(
            "import sys\nfrom pathlib import Path\n"
            "names = {'numpy': numpy}\n"
            "for folder in sys.path:\n"
            "    for path in Path(folder).glob('reference/**/numbers*.py'):\n"
            "        exec(path.read_text(), names)\n"
            "def later(info):\n    globals().update(names)\n"
            "get_ipython().events.register('pre_run_cell', later)"
        ),
    ),
    Case(
        "environment",
        "the grader's environment read, its own and through `/proc`",
        first(
            "import os\nfrom pathlib import Path\nprint(dict(os.environ))\n"
            "for path in Path('/proc').glob('[0-9]*/environ'):\n"
            "    try: print(path, path.read_bytes())\n"
            "    except OSError as error: print(error)"
        ),
    ),
    Case(
        "reads-secrets",
        "files of the grader's read by their absolute names",
        first(
            "for name in 'ROOT/secret.txt', 'ROOT/nbgrader_config.py':\n"
            "    try: print(open(name).read()[:100])\n"
            "    except OSError as error: print(error)"
        ),
    ),
    Case(
        "inside-link",
        "a link to a secret made while the notebook runs",
        first("import os\nos.symlink('ROOT/secret.txt', 'link')\nprint(open('link').read())"),
    ),
]

_EVIL = (
    "import os\n"
    "class Evil:\n"
    "    def __reduce__(self): return os.system, ('touch ROOT/reduced',)\n"
    "    def __getstate__(self): os.system('touch ROOT/reduced')\n"
)

OBJECTS = [
    Case(
        "reduce",
        "answers with a `__reduce__` that runs a program where they are unpickled",
        returning("Evil()", _EVIL),
        flags=(NO_VALUE,),
    ),
    Case(
        "object-array",
        "an array of objects with such a `__reduce__`",
        returning("numpy.array([Evil()], dtype=object)", _EVIL),
        flags=(NO_VALUE,),
    ),
    Case(
        "raises-evil",
        "an exception with such a `__reduce__`, and arguments of the same kind",
        returning(
            "fail()",
            _EVIL + "class Odd(Evil, Exception): pass\ndef fail(): raise Odd(Evil(), Odd())",
        ),
    ),
    Case(
        "huge-array",
        "an array of 80 MB as an answer",
        returning("kept", "kept = numpy.ones(10_000_000)"),
        # it depends on the test which of both processes has too little memory for it
        maybe=(NO_VALUE, ENDED, ENDED_IN_TEST),
    ),
    Case(
        "deep-list",
        "a list a hundred thousand deep as an answer",
        returning("deep", "deep = []\nfor _ in range(100_000): deep = [deep]"),
        flags=(NO_VALUE,),
    ),
    Case(
        "endless-list",
        "a list that contains itself as an answer",
        returning("loop", "loop = []\nloop.append(loop)"),
        flags=(NO_VALUE,),
    ),
    Case(
        "endless-iterator",
        "an object without end as an answer",
        returning(
            "Endless()",
            "class Endless:\n    def __len__(self): return 10**9\n"
            "    def __getitem__(self, place): return 1.0\n"
            "    def __float__(self): return 1.0",
        ),
        flags=(NO_VALUE,),
    ),
    Case("huge-number", "a number of a hundred thousand digits", returning("10**100_000")),
    Case("nan", "nan as every answer", returning("float('nan')")),
    Case("nothing", "`None` as every answer", returning("None")),
]
