"""A class on a JupyterHub: two students and their teacher, from the release to the feedback.

A hub starts each server as the user to whom it belongs. So this needs root, and makes its users in
a mount namespace of its own: nobody else sees them.
"""

import contextlib
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import requests
from hang import HANG
from toy_course import answered, make_course

from tools.layout import ROOT

SRV = Path("/srv")  # where the page puts the hub; in the namespace it is a folder of the test
PAGE = ROOT / "book" / "jupyterhub.md"
PRIVATE = ("unshare", "--mount", "--propagation", "private")
USERS = {"grace": 20001, "ada": 20002, "ben": 20003}


HAS_RIGHTS = (  # to make users that nobody else sees
    sys.platform == "linux"
    and os.geteuid() == 0
    and SRV.is_dir()
    and subprocess.run([*PRIVATE, "true"], capture_output=True, check=False).returncode == 0
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not HAS_RIGHTS, reason="needs root, and a mount namespace of its own"),
]


def namespace(root):
    """Return shell commands that put a folder at /srv, and let everyone reach Python and the code.

    Folders below one that is private, such as root's home, get a place in an empty one.
    """
    lines = [f"mount --bind {root} {SRV}"]
    lines += [f"mount --bind {SRV}/etc/{name} /etc/{name}" for name in ("passwd", "group")]
    hidden, staged = set(), {}
    for number, folder in enumerate({Path(sys.base_prefix), Path(sys.prefix), ROOT}):
        if private := [one for one in folder.parents if not one.stat().st_mode & 0o001]:
            hidden.add(private[-1])
            staged[folder] = place = f"{SRV}/stage/{number}"
            lines += [f"mkdir -p {place}", f"mount --bind {folder} {place}"]
    lines += [f"mount -t tmpfs -o mode=755 none {parent}" for parent in hidden]
    for folder, place in staged.items():
        lines += [f"mkdir -p {folder}", f"mount --move {place} {folder}"]
    return lines


class Hub:
    """A hub as the page says, at /srv/hub of its namespace."""

    def __init__(self, root):
        self.root = root
        root.chmod(0o755)
        make_course(course := root / "home" / "grace" / "course")
        config = (course / "nbgrader_config.py").read_text("utf-8")
        shared = config.replace('str(BUILD / "exchange")', f'"{SRV}/exchange"')
        assert shared != config  # all users share the exchange
        (course / "nbgrader_config.py").write_text(shared)
        shutil.copytree(ROOT / "tools/classroom/hub", course / "tools/classroom/hub")
        (root / "etc").mkdir()
        entries = {"passwd": "{0}:x:{1}:{1}::{2}/home/{0}:/bin/sh\n", "group": "{0}:x:{1}:\n"}
        for file, entry in entries.items():
            lines = "".join(entry.format(name, n, SRV) for name, n in USERS.items())
            (root / "etc" / file).write_text(Path("/etc", file).read_text("utf-8") + lines)
        for name, number in USERS.items():
            home = root / "home" / name
            home.mkdir(exist_ok=True)
            subprocess.run(["chown", "-R", f"{number}:{number}", home], check=True)
            home.chmod(0o700)

        with contextlib.ExitStack() as stack:  # three ports that nothing uses
            bound = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in "123"]
            ports = [each.getsockname()[1] for each in bound]
        self.address = f"http://127.0.0.1:{ports[0]}"
        changes = (
            # passwords of this machine are none of the test's business
            "c.JupyterHub.authenticator_class = 'dummy'\n"
            f"c.JupyterHub.bind_url = {self.address!r}\nc.JupyterHub.hub_port = {ports[1]}\n"
            f"c.ConfigurableHTTPProxy.api_url = 'http://127.0.0.1:{ports[2]}'\n"
            f"c.Spawner.start_timeout = c.Spawner.http_timeout = {HANG}\n"
        )
        # the handout is not packed and installed: its place has the packages of this environment
        output = re.findall("^sudo (?!unzip|make)(.+)", PAGE.read_text("utf-8"), re.MULTILINE)
        *first, last = output
        assert len(first) == 3
        commands = [
            *namespace(root),
            f"cd {SRV}/home/grace/course",
            *first,
            f"mkdir {SRV}/hub/course; ln -s {sys.prefix} {SRV}/hub/course/.venv",
            f"echo {shlex.quote(changes)} >> {SRV}/hub/jupyterhub_config.py",
            f"cd {SRV}/hub; exec {last}",
        ]
        self.log = root / "hub.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*PRIVATE, "sh", "-ec", "\n".join(commands)],
                stdout=log, stderr=subprocess.STDOUT, cwd=root,
            )  # fmt: skip
        self.wait(lambda: requests.get(f"{self.address}/hub/api", timeout=HANG).ok)

    def wait(self, is_there):
        """Wait until something is there, as long as the hub runs."""
        end = time.monotonic() + HANG
        while True:
            with contextlib.suppress(requests.ConnectionError):
                if is_there():
                    return
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < end, self.log.read_text()
            time.sleep(0.1)

    def run_as(self, name, *command):
        """Run a command as a user, at home; return all that it printed."""
        number, home = str(USERS[name]), f"{SRV}/home/{name}"
        done = subprocess.run(
            ["nsenter", "--target", str(self.process.pid), "--mount",
             "setpriv", "--reuid", number, "--regid", number, "--clear-groups",
             "sh", "-c", f"cd {home}; exec {shlex.join(command)}"],
            env={"HOME": home, "PATH": f"{sys.prefix}/bin:{os.environ['PATH']}"},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=HANG, check=False,
        )  # fmt: skip
        return f"{done.stdout}\nexit status {done.returncode}"

    def teach(self, tool, *arguments):
        """Run one of the course's commands as the teacher."""
        code = (
            f"import sys; sys.path.insert(0, {str(ROOT)!r}); "
            f"from tools.classroom import {tool} as tool; "
            "from tools.layout import Course; from pathlib import Path; "
            f"course = Course(Path('{SRV}/home/grace/course')); "
            f"sys.exit(tool.main(*{arguments!r}, course=course))"
        )
        output = self.run_as("grace", "python", "-c", code)
        assert output.endswith("exit status 0"), output


class Session:
    """A user who has signed in, as a browser does it, and whose server runs."""

    def __init__(self, hub, name):
        self.name, self.browser = name, requests.Session()
        self.home = f"{hub.address}/user/{name}"
        login = f"{hub.address}/hub/login"
        form = self.browser.get(login, timeout=HANG).text
        [token] = re.findall(r'name="_xsrf" value="([^"]+)"', form)
        fields = {"username": name, "password": "x", "_xsrf": token}
        answer = self.browser.post(login, data=fields, timeout=HANG)
        assert answer.ok, answer.text
        self.browser.get(f"{hub.address}/hub/spawn", timeout=HANG)
        lab = f"{self.home}/lab"
        hub.wait(lambda: self.browser.get(lab, timeout=HANG).url.startswith(self.home))

    def ask(self, method, path, **more):
        """Ask the user's server as its page does; return what it answers."""
        token = self.browser.cookies.get("_xsrf", path=f"/user/{self.name}/")
        more |= {"headers": {"X-XSRFToken": token or ""}, "timeout": HANG}
        answer = self.browser.request(method, f"{self.home}/{path}", **more)
        assert answer.ok, answer.text
        return answer.json()

    def press(self, action):
        """Press a button of the assignment list."""
        about = {"course_id": "optdl", "assignment_id": "toy"}
        done = self.ask("POST", f"assignments/{action}", data=about)
        assert done["success"], done


@pytest.fixture
def hub(tmp_path):
    """Start a hub, and end it, which ends all servers."""
    made = Hub(tmp_path)
    yield made
    made.process.terminate()
    made.process.wait(HANG)


def test_a_term_on_a_hub(hub):
    hub.teach("handout", "--how", "hub", "--to", f"{SRV}/home/grace/course.zip")
    hub.teach("release", "toy")
    ada, ben = Session(hub, "ada"), Session(hub, "ben")
    for student, body in ((ada, "2 * x"), (ben, "x * x")):
        [released] = student.ask("GET", "assignments?course_id=optdl")["value"]
        assert (released["assignment_id"], released["status"]) == ("toy", "released")
        student.press("fetch")
        notebook = hub.root / "home" / student.name / "toy" / "toy.ipynb"
        content = json.loads(answered(notebook, body, "3 * x", "Because."))
        work = {"type": "notebook", "content": content}
        student.ask("PUT", "api/contents/toy/toy.ipynb", json=work)
        student.press("submit")

    # nobody reads what another handed in, nor how the course solves it
    private = ("exchange/optdl/inbound", "home/grace/course/solutions", "home/ada/toy", "hub/state")
    for place in private:
        assert "Permission denied" in hub.run_as("ben", "ls", f"{SRV}/{place}"), place
    assert "ada+toy+" in hub.run_as("grace", "ls", f"{SRV}/exchange/optdl/inbound")

    hub.teach("grade", "toy")
    grace = Session(hub, "grace")
    marks = grace.ask("GET", "formgrader/api/submissions/toy")
    assert {one["student"]: one["score"] for one in marks} == {"ada": 6, "ben": 3}

    page = grace.browser.get(f"{grace.home}/formgrader/manage_assignments", timeout=HANG)
    # or JupyterLab would not show it
    assert "frame-ancestors 'self'" in page.headers["Content-Security-Policy"]

    hub.teach("feedback", "toy")
    ada.press("fetch_feedback")
    [page] = (hub.root / "home" / "ada" / "toy" / "feedback").glob("*/toy.html")
    assert "Because." in page.read_text("utf-8")
