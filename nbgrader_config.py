"""Tell nbgrader where the course lives; every tool and the JupyterLab extensions read this file.

Sources and releases are committed; all that grading makes stays below ``build``.
"""

from pathlib import Path

import gradebox

ROOT = Path(__file__).resolve().parent
BUILD = ROOT / "build"

# Jupyter puts get_config there when it loads this file.
c = get_config()

c.CourseDirectory.course_id = "optdl"
c.CourseDirectory.root = str(ROOT)
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
c.CourseDirectory.submitted_directory = "build/submitted"
c.CourseDirectory.autograded_directory = "build/autograded"
c.CourseDirectory.feedback_directory = "build/feedback"
c.CourseDirectory.solution_directory = "build/solution"
c.CourseDirectory.db_url = f"sqlite:///{BUILD / 'gradebook.db'}"
c.CourseDirectory.ignore = [".ipynb_checkpoints", "*.pyc", "__pycache__", ".DS_Store"]

# A local exchange: the instructor releases into it, students fetch from it and submit to it.
c.Exchange.root = str(BUILD / "exchange")
# Students work here. What they edit in another of these folders is gathered and handed in, too.
c.Exchange.assignment_dir = str(ROOT / "work")
c.ExchangeFactory.submit = "gradebox.Submit"
c.Submit.places = ["exercises", "build/work"]
c.Exchange.timezone = "UTC"
# A second release of the same assignment replaces the first.
c.ExchangeReleaseAssignment.force = True

# Notebooks run in forks of a process that has imported already, or, where the system cannot seal
# one, in a Python of WebAssembly. A notebook can import no answers; what it imports of the checks
# does nothing where the student's code runs; what they observe of an answer is imported there.
gradebox.configure(c)
c.WarmExecute.imports = ["numpy", "optdl.observation"]
# The convolution is apart from the rest of BNP, which the lab of its chapter uses.
c.WarmExecute.banned = ["optdl.{assignment}", "optdl.bnp.convolution"]
c.WarmExecute.stubbed = ["optdl.checks"]
c.WarmExecute.prepare = "from optdl.checks import prepare; prepare('{assignment}')"
c.Wasm.substitutes = ["tools/site/inpage/library"]

# Pages load nothing: formulas are MathML. They go to everyone who can get them, and who handed in
# by folder is named. Points are missing because of the mistake that a check names, or else because
# of what it says is wrong or not written.
gradebox.configure_feedback(c)
c.FeedbackPage.reason = (
    r"(?m)^Likely cause: (.+)|^Why: (?![\s\S]*^Likely cause: )(.+)|^✗ .+: (not written) yet"
)

# What gradebox keeps of each execution, and what a change of grades all anew.
c.Gradebox.folder = "build/gradebox"
c.Gradebox.depends = ["src/optdl"]

# An endless loop costs its cell and no more: the rest of the notebook is graded. Where notebooks
# run in forks this is own time: seconds in which a cell waits for a processor do not count.
c.Execute.timeout = 20
c.Execute.interrupt_on_timeout = True
# A lab trains where the student works. Grading reads the record that the training left: the
# student's own, and not the one beside the solutions.
c.Execute.skip_cells_with_tag = "train"
c.Autograde.exclude_overwriting = {
    folder.name: ["record.json"] for folder in ROOT.glob("solutions/*/")
}
# Kernels tell errors only: their advice on transports would fill the terminal.
c.Execute.extra_arguments = ["--log-level=ERROR"]

# A student who deletes a test cell is tested all the same.
c.OverwriteCells.add_missing_cells = True

# Late work is shown as late and loses no marks; "zero" takes them all.
c.LateSubmissionPlugin.penalty_method = "none"
