"""The house stays in order: one name for a topic everywhere, imports one way, clean text files."""

import ast
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
    "moments": set(),
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
        *("checks", "drivers", "images", "labs", "observation"),
        *("topic", "problems", "data", "networks", "records"),
    },
}


# The same for gradebox, from the lowest layer up: packages, and the modules beside them.
LAYERS = {
    "configuration": set(),
    "events": set(),
    "files": set(),
    "moments": set(),
    "observation": set(),
    "processors": set(),
    "values": set(),
    "sandbox": set(),
    "workers": {"observation", "values", "sandbox"},
    "nbgrader": {"configuration", "events", "files", "sandbox", "workers"},
    "run": {"events", "files", "moments", "sandbox", "workers", "nbgrader"},
    "feedback": {"workers", "nbgrader"},
    "exchange": {"files"},
    "cluster": {"files", "nbgrader", "run"},
    "cli": {"processors", "sandbox", "workers", "nbgrader", "run", "cluster"},
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


def test_numbered_pages_are_the_chapters() -> None:
    # Their order stands in the contents alone.
    assert sorted(numbered_pages()) == sorted(existing_topics())


@pytest.mark.parametrize("topic", existing_topics())
def test_topic_has_one_name_everywhere(topic: str) -> None:
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
def test_assignment_folder_holds_its_own_notebooks(topic: str) -> None:
    notebooks = {f"{topic}.ipynb", *(["lab.ipynb"] if topic in labs() else [])}
    for folder in ("solutions", "exercises"):
        assert {path.name for path in (ROOT / folder / topic).glob("*.ipynb")} == notebooks
    assert not (ROOT / "exercises" / topic / "record.json").exists(), "it would solve the run"


def labs() -> list[str]:
    """Return the topics whose assignment has a lab."""
    return [path.parent.name for path in sorted((ROOT / "solutions").glob("*/lab.ipynb"))]


def test_each_lab_has_checks_and_record() -> None:
    for parts in ("src/optdl/checks/*/lab_record.py", "solutions/*/record.json"):
        assert {path.parent.name for path in ROOT.glob(parts)} == set(labs()), parts


@pytest.mark.parametrize("topic", existing_topics())
def test_chapter_links_its_lab(topic: str) -> None:
    text = (ROOT / "book" / topic / "index.md").read_text(encoding="utf-8")
    assert (f"../../exercises/{topic}/lab.ipynb" in text) == (topic in labs())


@pytest.mark.parametrize("topic", existing_topics())
def test_chapter_has_label_assignment_and_sources(topic: str) -> None:
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
        elif package == "optdl" and top.startswith("gradebox"):
            broken.append(f"{where}: optdl knows nothing of gradebox")
        elif package == "gradebox" and top == "gradebox_wasm":
            broken.append(f"{where}: gradebox finds a sandbox by its entry point")
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


def test_gradebox_layers_have_no_circle() -> None:
    below: set[str] = set()
    for name, allowed in LAYERS.items():  # each of them only on those before it
        assert allowed <= below, f"{name} stands below {', '.join(sorted(allowed - below))}"
        below.add(name)


# A notebook starts at once: its first cell imports the checks. Most of SciPy takes longer to import
# than the interpreter, NumPy and the checks together, and PyTorch ten times as long.
HEAVY = ("scipy", "torch", "matplotlib", "sklearn", "pandas", "pooch", "tqdm", "PIL", "IPython")


@pytest.mark.parametrize("topic", existing_topics())
def test_checks_import_nothing_heavy(topic: str) -> None:
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


def test_library_and_pages_import_no_checks() -> None:
    importers = users_of_checks(programs())
    assert not importers, "\n".join(importers)


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


def test_no_file_names_machine_or_registry() -> None:
    problems = [
        f"{file.relative_to(ROOT)}:{number}: {what}"
        for file in text_files()
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        for what, pattern in FORBIDDEN.items()
        if re.search(pattern, line)
    ]
    assert not problems, "\n".join(problems)


# --- What stands beside the code --------------------------------------------------------------

COLOR = re.compile(r"#(?:[0-9a-f]{3,4}){1,2}\b|\b(?:rgb|hsl|hwb|lab|lch|oklab|oklch)a?\(", re.I)


def colors_in(style: str) -> list[str]:
    """Return the colors in the declarations of a style sheet; paper is white everywhere."""
    values = re.findall(r":([^:;{}]*)(?=[;}])", re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL))
    colors = [color for value in values for color in COLOR.findall(value)]
    return [color for color in colors if color != "#fff"]


def test_colors_stand_in_one_style_sheet() -> None:
    sheets = [*(ROOT / "book").rglob("*.css")]
    colors = {sheet.name: colors_in(sheet.read_text("utf-8")) for sheet in sheets}
    assert colors.pop("colors.css")
    assert not any(colors.values()), f"write them into colors.css, with a name: {colors}"


def test_each_color_used_is_defined() -> None:
    text = {sheet.name: sheet.read_text("utf-8") for sheet in (ROOT / "book").rglob("*.css")}
    pattern = r"--(?:course|ex)-[\w-]+"
    used = {name for style in text.values() for name in re.findall(rf"var\(({pattern})", style)}
    assert used == set(re.findall(rf"({pattern}):", text["colors.css"]))


def test_references_and_citations_match() -> None:
    text = "".join(path.read_text("utf-8") for path in (ROOT / "book").rglob("*.md"))
    roles = re.findall(r"\{(?:foot)?cite(?::\w+)?\}`([^`]+)`", text)
    cited = {key.strip() for keys in roles for key in keys.split(",")}
    bibliography = (ROOT / "book" / "references.bib").read_text("utf-8")
    assert cited == set(re.findall(r"^@\w+\{([^,\s]+)", bibliography, re.MULTILINE))


def test_version_and_license_agree_everywhere() -> None:
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
