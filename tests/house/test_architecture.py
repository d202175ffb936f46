"""The house stays in order: one name for a topic everywhere, imports one way, clean text files."""

import ast
import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import optdl

ROOT = Path(__file__).resolve().parents[2]
COURSE = yaml.safe_load((ROOT / "book" / "rows.yml").read_text(encoding="utf-8"))["chapters"]
TOPICS = tuple(chapter["topic"] for chapter in COURSE)
# Which modules of optdl each may import; all topics count as one, and so do all checks. The checks
# of labs are apart: they need PyTorch, and the others run without it.
MAY_IMPORT = {
    "files": set(),
    "special": set(),
    "problems": {"special"},
    "data": set(),
    "images": set(),
    "networks": set(),
    "objectives": set(),
    "observation": set(),
    "records": {"files"},
    "topic": {"special", "problems", "data", "images", "networks", "topic"},
    "training": {"files", "data", "records"},
    "experiments": {"topic", "data", "images", "networks", "records", "training", "plotting"},
    "labs": {"files", "topic", "data", "networks", "records"},
    # beside a student's answer: what holds no answer itself
    "drivers": {"labs", "observation"},
    "plotting": {"records"},
    "checks": {"checks", "objectives", "observation", "topic", "problems", "data"},
    "checks of labs": {
        *("checks", "drivers", "labs", "observation"),
        *("topic", "problems", "data", "networks", "records"),
    },
}


# The same for gradebox, from the lowest layer up: packages, and the modules beside them.
LAYERS = {
    "configuration": set(),
    "events": set(),
    "files": set(),
    "observation": set(),
    "processors": set(),
    "values": set(),
    "sandbox": set(),
    "workers": {"observation", "values", "sandbox"},
    "wasm": {"values", "sandbox", "workers"},
    "nbgrader": {"configuration", "events", "files", "sandbox", "workers", "wasm"},
    "run": {"events", "files", "sandbox", "workers", "nbgrader"},
    "feedback": {"workers", "nbgrader"},
    "exchange": {"files"},
    "cluster": {"files", "nbgrader", "run"},
    "container": {"processors", "events", "files", "sandbox", "nbgrader", "run", "cluster"},
    "cli": {"processors", "sandbox", "workers", "wasm", "nbgrader", "run", "cluster", "container"},
}
PRIVATE = tuple(
    f"nbgrader.{part}"
    for part in ("apps", "converters", "coursedir", "nbgraderformat", "preprocessors", "utils")
)
"""What a new version of nbgrader may change without notice."""


# --- One name for a topic everywhere ----------------------------------------------------------


def files_of(topic: str) -> list[str]:
    """Return all files that a topic has; its code is a module, or a package."""
    package = f"src/optdl/{topic}/__init__.py"
    return [
        f"book/{topic}/index.md",
        package if (ROOT / package).exists() else f"src/optdl/{topic}.py",
        f"src/optdl/checks/{topic}/__init__.py",
        f"solutions/{topic}/{topic}.ipynb",
        f"exercises/{topic}/{topic}.ipynb",
        f"tests/optdl/test_{topic}.py",
    ]


def existing_topics() -> list[str]:
    return [topic for topic in TOPICS if (ROOT / "book" / topic).is_dir()]


def numbered_pages() -> list[str]:
    """Return the pages of the numbered part of the contents, in the order of the book."""
    parts = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))["parts"]
    return [
        page["file"].split("/")[1]
        for part in parts
        if part.get("numbered")
        for page in part["chapters"]
    ]


def test_the_numbered_pages_of_the_contents_are_the_chapters() -> None:
    # Their order stands in the contents alone.
    assert sorted(numbered_pages()) == sorted(existing_topics())


@pytest.mark.parametrize("topic", existing_topics())
def test_a_topic_has_the_same_name_everywhere(topic: str) -> None:
    missing = [file for file in files_of(topic) if not (ROOT / file).exists()]
    assert not missing, f"book/{topic} exists, and these do not: {', '.join(missing)}"


@pytest.mark.parametrize("folder", ["src/optdl/checks", "solutions", "exercises"])
def test_folders_of_topics_hold_nothing_else(folder: str) -> None:
    names = {
        path.stem for path in (ROOT / folder).iterdir() if not path.name.startswith((".", "_"))
    }
    machinery = {"catalog", "compare", "diagnoses", "exercise", "hints", "labs"}
    machinery |= {"report", "runner", "summary"}
    strange = names - set(existing_topics()) - (machinery if folder.endswith("checks") else set())
    assert not strange, f"{folder} has {', '.join(sorted(strange))}, for which there is no chapter"


@pytest.mark.parametrize("topic", existing_topics())
def test_an_assignment_folder_holds_its_notebooks_and_nothing_of_another_topic(topic: str) -> None:
    notebooks = {f"{topic}.ipynb", *(["lab.ipynb"] if topic in labs() else [])}
    for folder in ("solutions", "exercises"):
        assert {path.name for path in (ROOT / folder / topic).glob("*.ipynb")} == notebooks
    assert not (ROOT / "exercises" / topic / "record.json").exists(), "it would solve the run"


def labs() -> list[str]:
    """Return the topics whose assignment has a lab."""
    return [path.parent.name for path in sorted((ROOT / "solutions").glob("*/lab.ipynb"))]


def test_labs_and_their_checks_are_there_for_the_same_topics() -> None:
    checked = (ROOT / "src" / "optdl" / "checks").glob("*/lab_record.py")
    assert {path.parent.name for path in checked} == set(labs())


def test_a_record_stands_beside_a_lab() -> None:
    recorded = {path.parent.name for path in (ROOT / "solutions").glob("*/record.json")}
    assert recorded <= set(labs())


@pytest.mark.parametrize("topic", existing_topics())
def test_a_chapter_hands_out_its_lab(topic: str) -> None:
    text = (ROOT / "book" / topic / "index.md").read_text(encoding="utf-8")
    assert (f"../../exercises/{topic}/lab.ipynb" in text) == (topic in labs())


@pytest.mark.parametrize("topic", existing_topics())
def test_a_chapter_has_its_label_its_assignment_and_its_sources(topic: str) -> None:
    pages = {path.stem: path.read_text("utf-8") for path in (ROOT / "book" / topic).glob("*.md")}
    first, text = pages["index"], "".join(pages.values())
    assert f"\n({topic})=\n# " in first, f"book/{topic}/index.md needs ({topic})= before its title"
    assert f"../../exercises/{topic}/{topic}.ipynb" in first
    assert len(re.findall(r"^(?:##|```\{admonition\}) Assignment$", first, re.MULTILINE)) == 1
    assert len(re.findall(r"^## Sources$", text, re.MULTILINE)) == 1


# --- Imports go one way -----------------------------------------------------------------------


def imported(source: str) -> list[tuple[int, str]]:
    """Return the modules that a file imports, with their lines; ``from a import b`` gives a.b."""
    modules = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            modules += [(node.lineno, f"{base}.{alias.name}") for alias in node.names]
    return modules


def layer(module: str) -> str:
    """Return to what the rules assign a module, such as ``topic`` for ``optdl.erm.sgd``."""
    if re.match(r"optdl\.checks\.(labs\b|\w+\.lab_(\d|record|shared))", module):
        return "checks of labs"
    if f"{module}.".startswith("optdl.labs.drivers."):
        return "drivers"
    name = module.split(".")[1] if "." in module else ""
    return "topic" if name in TOPICS else name


def broken_rules(file: str, source: str) -> list[str]:
    """Return each import of a file below ``src`` that goes the wrong way."""
    package, *inner = Path(file).with_suffix("").parts[1:]
    here, rules = (
        layer(".".join([package, *inner])),
        LAYERS if package == "gradebox" else MAY_IMPORT,
    )
    broken = []
    for line, module in imported(source):
        top = module.split(".")[0]
        where = f"{file}:{line} imports {module}"
        if not top:
            broken.append(f"{where}: write imports in full, so that their direction can be read")
        elif top in {"book", "experiments", "solutions", "exercises", "tests", "tools"}:
            broken.append(f"{where}: src imports nothing of {top}")
        elif package == "optdl" and top == "gradebox":
            broken.append(f"{where}: optdl knows nothing of gradebox")
        elif package == "gradebox" and here != "nbgrader" and module.startswith(PRIVATE):
            broken.append(f"{where}: only gradebox.nbgrader knows nbgrader's private parts")
        elif package == top and here in rules:
            there = layer(module)
            if there and there != here and there not in rules[here]:
                allowed = ", ".join(sorted(rules[here])) or "no other module"
                broken.append(f"{where}: {here} may import {allowed}, not {there}")
    return broken


def sources(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def test_imports_go_one_way() -> None:
    broken = [
        rule
        for path in sources("src")
        for rule in broken_rules(path.relative_to(ROOT).as_posix(), path.read_text("utf-8"))
    ]
    assert not broken, "\n".join(broken)


def test_each_module_of_optdl_has_its_rule() -> None:
    layers = {
        layer(f"optdl.{path.stem}")
        for path in (ROOT / "src" / "optdl").iterdir()
        if not path.name.startswith("_") and (path.suffix == ".py" or path.is_dir())
    }
    assert layers <= set(MAY_IMPORT), "say in MAY_IMPORT what the new module may import"


def test_each_layer_of_gradebox_has_its_rule() -> None:
    inside = (ROOT / "src" / "gradebox").iterdir()
    layers = {
        path.stem for path in inside if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert layers - {"__init__", "__main__"} == set(LAYERS), "say in LAYERS what each may import"


def test_gradebox_names_no_course() -> None:
    files = [file for file in text_files() if file.is_relative_to(ROOT / "src" / "gradebox")]
    mentions = [file.name for file in files if "optdl" in file.read_text("utf-8").lower()]
    assert not mentions, "what a course of its own needs, it says in nbgrader_config.py"


def test_the_layers_of_gradebox_stand_on_each_other() -> None:
    below: set[str] = set()
    for name, allowed in LAYERS.items():  # each of them only on those before it
        assert allowed <= below, f"{name} stands below {', '.join(sorted(allowed - below))}"
        below.add(name)


@pytest.mark.parametrize(
    ("file", "source", "reason"),
    [
        ("src/optdl/special.py", "from optdl.erm import sgd", "may import no other module"),
        ("src/optdl/training/loop.py", "import optdl.quadratic", "not topic"),
        ("src/optdl/plotting.py", "from optdl import training", "not training"),
        ("src/optdl/erm.py", "from optdl.checks import check", "not checks"),
        ("src/optdl/erm.py", "from optdl import plotting", "not plotting"),
        ("src/optdl/erm.py", "def f():\n    from tests import conftest", "nothing of tests"),
        ("src/optdl/erm.py", "from .problems import quadratic", "in full"),
        ("src/optdl/optimizers/sgd.py", "from optdl.labs import runs", "not labs"),
        ("src/optdl/labs/runs.py", "from optdl.checks import check", "not checks"),
        ("src/optdl/checks/runner.py", "import optdl.checks.bnp.lab_record", "not checks of labs"),
        ("src/optdl/labs/drivers/bnp.py", "from optdl.bnp import BNP", "not topic"),
        ("src/optdl/checks/erm/shared.py", "from optdl.networks import FC", "not networks"),
        ("src/optdl/erm.py", "from gradebox import observe", "knows nothing of gradebox"),
        ("src/gradebox/values/codec.py", "from gradebox.workers import stubs", "no other module"),
        ("src/gradebox/workers/pool.py", "import gradebox.nbgrader.cells", "not nbgrader"),
        (
            "src/gradebox/run/batch.py",
            "from nbgrader.utils import setenv",
            "only gradebox.nb",
        ),
    ],
)
def test_an_import_that_goes_the_wrong_way_is_named(file: str, source: str, reason: str) -> None:
    [message] = broken_rules(file, source)
    assert reason in message
    assert file in message


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("src/optdl/quadratic.py", "from optdl.problems import quadratic"),
        ("src/optdl/bnp/a.py", "from optdl.batchnorm import fold\nfrom optdl.networks import FC"),
        ("src/optdl/plotting.py", "from optdl.records import Record"),
        ("src/optdl/checks/erm/shared.py", "from optdl import erm\nfrom optdl.checks import check"),
        ("src/optdl/checks/bnp/lab_5_bnp.py", "import optdl.checks.labs\nimport optdl.labs.runs"),
        ("src/optdl/labs/runs.py", "from optdl.records import Record\nimport optdl.data"),
        ("src/optdl/erm.py", "import numpy as np\nfrom collections.abc import Callable"),
    ],
)
def test_an_import_that_goes_the_right_way_is_let_pass(file: str, source: str) -> None:
    assert broken_rules(file, source) == []


# A notebook starts at once: its first cell imports the checks. Most of SciPy takes longer to import
# than the interpreter, NumPy and the checks together, and PyTorch ten times as long.
HEAVY = ("scipy", "torch", "matplotlib", "sklearn", "pandas", "pooch", "tqdm", "PIL", "IPython")


@pytest.mark.parametrize("topic", existing_topics())
def test_the_checks_of_a_topic_import_nothing_heavy(topic: str) -> None:
    code = f"import sys, optdl.checks.{topic}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()).isdisjoint(HEAVY), "import it in the function that needs it"


def cells(page: str) -> str:
    """Return the code cells of a page of the book as one file."""
    return "\n".join(
        re.findall(r"^```{code-cell}[^\n]*\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    )


def without_options(code: str) -> str:
    """Return code cells without what tells the book how to show them."""
    return re.sub(r"^(?:---\n.*?^---\n|:\w[^\n]*\n)", "", code, flags=re.MULTILINE | re.DOTALL)


def programs() -> dict[str, str]:
    """Return all code that is neither notebook, test nor tool: the package, the book, figures."""
    files = [*sources("src"), *sources("book"), *sources("experiments")]
    code = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in files}
    pages = {path: path.read_text("utf-8") for path in (ROOT / "book").rglob("*.md")}
    return code | {
        path.relative_to(ROOT).as_posix(): without_options(cells(text))
        for path, text in pages.items()
    }


def users_of_checks(code: dict[str, str]) -> list[str]:
    """Return each file that imports the checks and is not one of them."""
    return [
        f"{file} imports {module}: only notebooks, tests and tools do"
        for file, text in code.items()
        if not file.startswith("src/optdl/checks/")
        for _, module in imported(text)
        if f"{module}.".startswith("optdl.checks.")
    ]


def test_nothing_but_notebooks_tests_and_tools_imports_the_checks() -> None:
    importers = users_of_checks(programs())
    assert not importers, "\n".join(importers)


def test_a_page_that_imports_the_checks_is_named() -> None:
    page = "# A\n```{code-cell} ipython3\n:tags: [a]\nfrom optdl.checks import check\n```\n"
    option = "```{code-cell}\n---\ntags: [a]\n---\nfrom optdl import erm\n```\n"
    code = without_options(cells(page + option))
    assert users_of_checks({"book/a.md": code}) == [
        "book/a.md imports optdl.checks.check: only notebooks, tests and tools do"
    ]
    assert [module for _, module in imported(code)] == ["optdl.checks.check", "optdl.erm"]


# --- Text files -------------------------------------------------------------------------------

# Parts are joined here so that this file does not hold what it looks for.
FORBIDDEN = {
    "the path of one machine": r"(?<![\w.}])/(?:home|Users|root|work)/\w",
    "the host of a package registry": "|".join(
        ["files\\.python" + "hosted", "py" + "pi\\.org", "registry\\.npm" + "js", "proxy\\.golang"]
    ),
    "a script of another site": "|".join(
        ["cdn\\.js" + "delivr", "unp" + "kg\\.com", "cdn" + "js\\."]
    ),
}
BINARY = {".png", ".jpg", ".gif", ".ico", ".woff", ".woff2", ".gz", ".npz", ".pdf"}


def text_files() -> list[Path]:
    """Return the files that are part of the repository or will be: all but what git ignores."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is not a git repository, so it cannot be told what belongs to it")
    files = [ROOT / line for line in listed.stdout.splitlines()]
    return [file for file in files if file.is_file() and file.suffix not in BINARY]


def forbidden_in(text: str) -> list[str]:
    """Return the number of each line that holds something forbidden, and what."""
    return [
        f"{number}: {what}"
        for number, line in enumerate(text.splitlines(), 1)
        for what, pattern in FORBIDDEN.items()
        if re.search(pattern, line)
    ]


def test_no_file_holds_a_path_of_one_machine_or_the_host_of_a_registry() -> None:
    problems = [
        f"{file.relative_to(ROOT)}:{item}"
        for file in text_files()
        for item in forbidden_in(file.read_text(encoding="utf-8"))
    ]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("text", ["see /ho" + "me/ada/x", "https://py" + "pi.org/simple"])
def test_what_is_forbidden_is_found(text: str) -> None:
    assert forbidden_in(f"fine\n{text}")[0].startswith("2: ")


def test_each_text_file_ends_in_one_newline_and_has_no_carriage_return() -> None:
    problems = []
    for file in text_files():
        content = file.read_bytes()
        if content and (not content.endswith(b"\n") or content.endswith(b"\n\n")):
            problems.append(f"{file.relative_to(ROOT)} must end in one newline")
        if b"\r" in content:
            problems.append(f"{file.relative_to(ROOT)} has a carriage return")
    assert not problems, "\n".join(problems)


def test_everything_is_spelled_right() -> None:
    files = [
        str(file.relative_to(ROOT))
        for file in text_files()
        if file.suffix in {".md", ".py", ".yml", ".js", ".css", ".toml", ".cff"}
    ]
    command = [sys.executable, "-m", "codespell_lib", *files]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


# --- What stands beside the code --------------------------------------------------------------

COLOR = re.compile(r"#(?:[0-9a-f]{3,4}){1,2}\b|\b(?:rgb|hsl|hwb|lab|lch|oklab|oklch)a?\(", re.I)


def colors_in(style: str) -> list[str]:
    """Return the colors in the declarations of a style sheet; paper is white everywhere."""
    values = re.findall(r":([^:;{}]*)(?=[;}])", re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL))
    colors = [color for value in values for color in COLOR.findall(value)]
    return [color for color in colors if color != "#fff"]


def test_the_colors_of_the_site_stand_in_one_style_sheet() -> None:
    sheets = [*(ROOT / "book").rglob("*.css")]
    colors = {sheet.name: colors_in(sheet.read_text("utf-8")) for sheet in sheets}
    assert colors.pop("colors.css")
    assert not any(colors.values()), f"write them into colors.css, with a name: {colors}"


def test_a_color_in_a_style_sheet_is_found() -> None:
    style = "#cab .a:hover { color: var(--x, #fff); top: 1px } .b { border: 1px solid #1c6b2a; }"
    assert colors_in(style + ".c{background:rgb(1 2 3 / 4%)}") == ["#1c6b2a", "rgb("]


def test_each_color_that_a_style_sheet_names_is_there() -> None:
    text = {sheet.name: sheet.read_text("utf-8") for sheet in (ROOT / "book").rglob("*.css")}
    pattern = r"--(?:course|ex)-[\w-]+"
    used = {name for style in text.values() for name in re.findall(rf"var\(({pattern})", style)}
    assert used == set(re.findall(rf"({pattern}):", text["colors.css"]))


def test_each_reference_is_cited_and_each_citation_is_there() -> None:
    text = "".join(path.read_text("utf-8") for path in (ROOT / "book").rglob("*.md"))
    roles = re.findall(r"\{(?:foot)?cite(?::\w+)?\}`([^`]+)`", text)
    cited = {key.strip() for keys in roles for key in keys.split(",")}
    bibliography = (ROOT / "book" / "references.bib").read_text("utf-8")
    assert cited == set(re.findall(r"^@\w+\{([^,\s]+)", bibliography, re.MULTILINE))


def test_a_version_is_the_same_everywhere_and_so_is_the_license() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert (citation["version"], citation["license"]) == (project["version"], project["license"])
    assert "MIT License" in (ROOT / "LICENSE").read_text("utf-8")
    version = project["version"]
    log = (ROOT / "CHANGELOG.md").read_text("utf-8")
    [latest, *_] = re.findall(r"^## \[(\d.*)\] - (.*)$", log, re.MULTILINE)
    assert latest == (version, str(citation["date-released"]))
    assert optdl.__version__ == version
    lab = (ROOT / "solutions" / "bnp_cnn" / "lab.ipynb").read_text("utf-8")
    assert f"learning_as_optimization-{version}-py3" in lab, "the wheel that goes to Colab"


def test_what_runs_before_a_commit_needs_no_network_and_is_there() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    hooks = [hook for repo in config["repos"] for hook in repo["hooks"]]
    assert {repo["repo"] for repo in config["repos"]} == {"local"}
    assert {hook["language"] for hook in hooks} == {"system"}
    modules = [re.search(r"python -m ([\w.]+)", hook["entry"]) for hook in hooks]
    missing = [m[1] for m in modules if m and importlib.util.find_spec(m[1]) is None]
    assert not missing
    assert all(modules)
