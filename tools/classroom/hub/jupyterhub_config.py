"""A JupyterHub for a class: each student is a user of this machine, and has a server at home.

A copy of this folder lies at ``/srv/hub``, and in ``/srv/hub/course`` the handout, with its
packages. Who teaches is a user, too, with the whole course at home.
"""

from pathlib import Path
from typing import Any

HUB = Path(__file__).resolve().parent
COMMANDS = HUB / "course" / ".venv" / "bin"
STATE = HUB / "state"
"""The hub's keys, and who is signed in: for nobody else."""
TEACHERS = {"grace": Path("~grace/course").expanduser()}
"""Who teaches, with the folder of the course."""

# The hub puts get_config there when it loads this file.
c = get_config()

STATE.mkdir(mode=0o700, exist_ok=True)
# A web server with a certificate stands before it; students' passwords must not travel in the open.
c.JupyterHub.bind_url = "http://127.0.0.1:8000"
c.JupyterHub.hub_port = 8081
c.JupyterHub.db_url = f"sqlite:///{STATE / 'hub.sqlite'}"
c.JupyterHub.cookie_secret_file = str(STATE / "cookie_secret")
c.ConfigurableHTTPProxy.command = [str(COMMANDS / "configurable-http-proxy")]
c.ConfigurableHTTPProxy.pid_file = str(STATE / "proxy.pid")

# Whoever can sign in to this machine can sign in to the hub, with the same password.
c.JupyterHub.authenticator_class = "pam"
c.Authenticator.allow_all = True


def settings(spawner: Any) -> str:
    """Return the folder of a user's settings for Jupyter and nbgrader."""
    course = TEACHERS.get(spawner.user.name)
    return str(course / "tools" / "classroom" / "hub" / "teacher" if course else HUB / "students")


c.Spawner.cmd = [str(COMMANDS / "jupyterhub-singleuser")]
c.Spawner.args = ["--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
c.Spawner.environment = {"JUPYTER_CONFIG_PATH": settings}
c.Spawner.notebook_dir = "~"
