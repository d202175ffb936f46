"""The house stays in order: chapters are complete, imports go one way, text files are clean."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

import optdl
from tools.layout import ROOT, contents
from tools.site.live import named

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
    "labs": {"files", "observation", "topic", "data", "networks", "records"},
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
    "values": set(),
    "sandbox": set(),
    "workers": {"observation", "values", "sandbox"},
    "nbgrader": {"configuration", "events", "files", "sandbox", "workers"},
    "run": {"events", "files", "moments", "sandbox", "workers", "nbgrader"},
    "feedback": {"workers", "nbgrader"},
    "exchange": {"files"},
    "cluster": {"files", "nbgrader", "run"},
    "cli": {"sandbox", "workers", "nbgrader", "run", "cluster"},
}
RULES = {"optdl": MAY_IMPORT, "gradebox": LAYERS}
PRIVATE = tuple(
    f"nbgrader.{part}"
    for part in ("apps", "converters", "coursedir", "nbgraderformat", "preprocessors", "utils")
)
"""What a new version of nbgrader may change without notice."""


# --- Chapters ---------------------------------------------------------------------------------

EXISTING = [topic for topic in TOPICS if (ROOT / "book" / topic).is_dir()]
LABS = {path.parent.name for path in (ROOT / "solutions").glob("*/lab.ipynb")}


def test_numbered_pages_are_the_chapters() -> None:
    # Their order stands in the contents alone.
    parts = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))["parts"]
    chapters = [page for part in parts if part.get("numbered") for page in part["chapters"]]
    assert sorted(page["file"].split("/")[1] for page in chapters) == sorted(EXISTING)
    pages = {page.relative_to(ROOT).as_posix() for page in (ROOT / "book").glob("**/*.md")}
    left = {page for page in pages - {f"{name}.md" for name in contents(ROOT)} if "/_" not in page}
    assert not left, "name these pages in _toc.yml"


def test_labs_have_notebooks_and_record_for_instructors() -> None:
    """That a topic has its page, code, checks and tests, tests/book/test_coverage.py shows."""
    for topic in EXISTING:
        notebooks = {f"{topic}.ipynb", *(["lab.ipynb"] if topic in LABS else [])}
        for folder in ("solutions", "exercises"):
            assert {path.name for path in (ROOT / folder / topic).glob("*.ipynb")} == notebooks
        assert not (ROOT / "exercises" / topic / "record.json").exists(), "it would solve the run"
        for part in (f"src/optdl/checks/{topic}/lab_record.py", f"solutions/{topic}/record.json"):
            assert (ROOT / part).exists() == (topic in LABS), part


# --- Imports go one way -----------------------------------------------------------------------


def layer(module: str) -> str:
    """Return to what the rules assign a module, such as ``topic`` for ``optdl.erm.sgd``."""
    if re.match(r"optdl\.checks\.(labs\b|\w+\.lab_(\d|record|shared))", module):
        return "checks of labs"
    if f"{module}.".startswith("optdl.labs.drivers."):
        return "drivers"
    name = module.split(".")[1]
    return "topic" if name in TOPICS else name


@pytest.mark.parametrize("package", RULES)
def test_imports_follow_the_layer_rules(package: str) -> None:
    """What comes from outside is declared, as test_packaging.py shows."""
    broken, rules = [], RULES[package]
    for path in sorted((ROOT / "src" / package).rglob("*.py")):
        here = layer(".".join(path.relative_to(ROOT / "src").with_suffix("").parts))
        if here in ("__init__", "__main__"):
            continue
        if here not in rules:
            broken.append(f"{path}: say in RULES what the new module may import")
            continue
        for module in named(path.read_text("utf-8")):
            is_own = module.startswith(f"{package}.")
            if is_own and (there := layer(module)) not in {here, *rules[here]}:
                broken.append(f"{path} imports {module}: {here} may import no {there}")
            if module.startswith(PRIVATE) and (package, here) != ("gradebox", "nbgrader"):
                broken.append(f"{path}: only gradebox.nbgrader knows nbgrader's private parts")
    assert broken == []


def test_pages_and_experiments_import_no_checks() -> None:
    files = [*(ROOT / "experiments").rglob("*.py"), *(ROOT / "book").rglob("*.py")]
    code = {path: path.read_text("utf-8") for path in files}
    for path in (ROOT / "book").rglob("*.md"):
        cells = re.findall(r"(?ms)^```{code-cell}[^\n]*\n(.*?)^```", path.read_text("utf-8"))
        code[path] = "\n".join(cells)
    imports = r"(?m)^\s*(?:from|import) optdl(?:\.checks| import .*\bchecks)\b"
    assert [path.name for path, text in code.items() if re.search(imports, text)] == []


# --- Text files -------------------------------------------------------------------------------

# Parts are joined here so that this file does not hold what it looks for.
FORBIDDEN = {
    "the path of one machine": r"(^|[^A-Za-z0-9_.}])/(home|Users|root|work)/[A-Za-z0-9_]",
    "the host of a package registry": "|".join(
        ["files\\.python" + "hosted", "py" + "pi\\.org", "registry\\.npm" + "js", "proxy\\.golang"]
    ),
    "a test name of more than eight words": r"def test(_[[:alnum:]]+){9}",
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_line_holds_what_is_forbidden(what: str) -> None:
    grep = ["git", "-C", str(ROOT), "grep", "-nIE", "--untracked", "-e", FORBIDDEN[what]]
    found = subprocess.run(grep, capture_output=True, text=True, check=False)
    if found.returncode == 128:
        pytest.skip("this is not a git repository, so it cannot be told what belongs to it")
    assert found.stdout + found.stderr == ""


# --- What stands beside the code --------------------------------------------------------------

COLOR = re.compile(r"#(?:[0-9a-f]{3,4}){1,2}\b|\b(?:rgb|hsl|hwb|lab|lch|oklab|oklch)a?\(", re.I)


def test_colors_stand_in_one_style_sheet() -> None:
    sheets = {
        path.name: re.sub(r"/\*.*?\*/", "", path.read_text("utf-8"), flags=re.DOTALL)
        for path in (ROOT / "book").rglob("*.css")
    }
    pattern = r"--(?:course|ex)-[\w-]+"
    used = {name for style in sheets.values() for name in re.findall(rf"var\(({pattern})", style)}
    assert used == {*re.findall(rf"({pattern}):", sheets.pop("colors.css"))}
    values = [
        (name, value)
        for name, style in sheets.items()
        for value in re.findall(r":([^:;{}]*)(?=[;}])", style)
        if {*COLOR.findall(value)} - {"#fff"}  # paper is white everywhere
    ]
    assert values == [], "write them into colors.css, with a name"


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


# --- Workflows ask for as little as they need ---------------------------------------------------

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
# A release on GitHub is a write to the repository's contents. The job that makes it checks nothing
# out, so no code of the repository or of a package ever has this permission.
MAY_WRITE = {"publish": {"pages", "id-token"}, "release": {"contents"}}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_are_read_only_pinned_and_limited(path: Path) -> None:
    text = path.read_text("utf-8")
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    assert not re.search(r"pull_request_target|secrets\.", text)
    for name, job in workflow["jobs"].items():
        if "uses" in job:  # its jobs have limits of their own
            assert (ROOT / job["uses"]).resolve() in WORKFLOWS, name
        else:
            assert job["timeout-minutes"] <= 120, name
        steps = [step for step in job.get("steps", []) if "uses" in step]
        assert all(re.fullmatch(r"actions/[\w/-]+@v\d+", step["uses"]) for step in steps), name
        checkouts = [step["with"] for step in steps if step["uses"].startswith("actions/checkout@")]
        assert all(options["persist-credentials"] is False for options in checkouts), name
        writes = {key for key, value in job.get("permissions", {}).items() if value == "write"}
        assert writes == MAY_WRITE.get(name, set()), name
        assert not (writes and checkouts), name
