"""IPython in one process, with what a cell shows gathered as a notebook keeps it."""

import codeop
import contextlib
import io
import json
import subprocess
import sys
from binascii import b2a_base64
from collections.abc import Callable, Iterator
from typing import Any

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Type
from traitlets.config import Config

Output = dict[str, Any]


class Outputs:
    """What the present cell has shown so far."""

    def __init__(self) -> None:
        self.longest = 2**20  # characters that a cell may show if nobody says otherwise
        self.start()

    @property
    def items(self) -> list[Output]:
        """Return the outputs; of each stream the text is in one piece, as a notebook keeps it."""
        return [o | {"text": "".join(o["text"])} if "name" in o else o for o in self._items]

    def start(self) -> None:
        """Forget what earlier cells have shown."""
        self.clear()
        self._printed = self._drawn = 0
        self.error = ""  # the first one that was shown, whatever was left out or cleared since

    def clear(self) -> None:
        """Forget what is shown, and not how much it was."""
        self._items: list[Output] = []
        self._texts: dict[str, list[str]] = {}

    @contextlib.contextmanager
    def set_aside(self) -> Iterator[None]:
        """Let others use it meanwhile, and go on with what was shown before."""
        shown = self.__dict__.copy()  # not by Python's vars, which may be the student's here
        yield
        self.__dict__.update(shown)

    def text(self, name: str, text: str) -> None:
        """Add text to what the stream has shown already."""
        room = self.longest - self._printed
        self._printed += len(text)
        if room <= 0 or not text:
            return
        if len(text) > room:
            text = f"{text[:room]}\n[the rest is left out: more than {self.longest} characters]\n"
        if name not in self._texts:
            self._texts[name] = []
            self._items.append({"output_type": "stream", "name": name, "text": self._texts[name]})
        self._texts[name].append(text)

    def add(self, kind: str, **content: Any) -> None:
        """Add an output of another kind, if it is not too much."""
        if kind == "error" and not self.error:
            self.error = f"{content['ename']}: {content['evalue']}"[:1000]
        self._drawn += len(repr(content))
        if self._drawn <= self.longest:
            self._items.append({"output_type": kind, **content})
        else:
            self.text("stdout", f"[an output is left out: more than {self.longest} characters]\n")


class Stream(io.StringIO):
    """Standard output or standard error of the cells."""

    encoding = "utf-8"

    def __init__(self, name: str, outputs: Outputs) -> None:
        super().__init__()
        self.name, self._stream, self._outputs = f"<{name}>", name, outputs

    def write(self, text: str) -> int:
        """Gather text."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self._outputs.text(self._stream, text)
        return len(text)


class _Publisher(DisplayPublisher):
    outputs: Outputs

    def publish(self, data: Any, metadata: Any = None, source: Any = None, **more: Any) -> None:
        name = (more.get("transient") or {}).get("display_id")
        new = _as_kept(data, metadata)
        named = {} if name is None else {"display_id": name}
        if not more.get("update"):
            return self.outputs.add("display_data", **new, **named)
        for output in self.outputs.items:
            if named and output.get("display_id") == name:
                output.update(new)
        return None

    def clear_output(self, wait: bool = False) -> None:
        self.outputs.clear()


class _Hook(DisplayHook):
    outputs: Outputs

    def write_output_prompt(self) -> None:  # a notebook shows the number beside the value
        pass

    def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
        kept = _as_kept(format_dict, md_dict)
        self.outputs.add("execute_result", **kept, execution_count=self.prompt_count)

    def finish_displayhook(self) -> None:  # without the line break of a terminal
        self._is_active = False


class Shell(InteractiveShell):
    """IPython that gathers instead of printing."""

    outputs: Outputs
    display_pub_class = Type(_Publisher)
    displayhook_class = Type(_Hook)

    @classmethod
    def make(cls) -> "Shell":
        """Return the shell of this process."""
        settings = Config()
        settings.HistoryManager.enabled = False  # no file, no thread: this process will be forked
        settings.Shell.colors = "linux"
        settings.Shell.autoawait = True
        shell = cls.instance(config=settings)
        shell.outputs = Outputs()
        shell.db = {}  # where %cd keeps its history: none of this user's files is in a sandbox
        shell.magics_manager.register_function(lambda line: None, magic_name="autosave")
        # from Python 3.13 on: a cell is whole, so that an answer cut short is a SyntaxError
        shell.compile.flags &= ~getattr(codeop, "PyCF_ALLOW_INCOMPLETE_INPUT", 0)
        for part in (shell.display_pub, shell.displayhook):
            vars(part)["outputs"] = shell.outputs
        # none in a fork is the first then, and it leaves no trace
        shell.run_cell("pass", store_history=False)  # type: ignore[no-untyped-call]
        return shell

    def capture(self) -> None:
        """Gather what is printed in this process from now on."""
        sys.stdout, sys.stderr = Stream("stdout", self.outputs), Stream("stderr", self.outputs)

    def init_io(self) -> None:
        """Leave the streams of this process alone until cells run."""

    def enable_gui(self, gui: Any = None) -> None:
        """Ignore event loops: there is no screen."""

    def _showtraceback(self, etype: Any, evalue: Any, stb: list[str]) -> None:
        name, lines = str(getattr(etype, "__name__", etype)), [*map(str, stb)]
        self.outputs.add("error", ename=name, evalue=text_of(evalue), traceback=lines)

    def var_expand(self, cmd: str, depth: int = 0, *more: Any, **named: Any) -> str:
        """Put variables into a line, which takes all names that there are, if it mentions any."""
        if "{" not in cmd and "$" not in cmd:
            return cmd
        expand: Any = super().var_expand  # which has no types
        return str(expand(cmd, depth + 1, *more, **named))

    def system(self, cmd: str) -> None:
        """Run a command of the system and show what it prints: there is no terminal for it."""
        pipes: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE}
        pipes |= {"stderr": subprocess.STDOUT, "text": True, "errors": "replace"}
        done = subprocess.run(self.var_expand(cmd, 1), shell=True, check=False, **pipes)
        sys.stdout.write(done.stdout)
        self.user_ns["_exit_code"] = done.returncode

    def execute(self, source: str) -> tuple[int | None, bool]:
        """Run one cell, gather what it shows, and return its number and whether it succeeded."""
        self.outputs.start()
        result = self.run_cell(source, store_history=True)  # type: ignore[no-untyped-call]
        error = result.error_before_exec or result.error_in_exec
        # one that IPython could not format was printed as text
        if error and all(output["output_type"] != "error" for output in self.outputs.items):
            self._showtraceback(type(error), error, [])
        return result.execution_count, bool(result.success)


def _as_kept(data: dict[str, Any], metadata: dict[str, Any] | None) -> Output:
    """Return a display with pictures in base64; one that no notebook can keep fails the cell."""
    shown = {"data": data, "metadata": metadata or {}}
    text = json.dumps(shown, default=lambda content: b2a_base64(content, newline=False).decode())
    return dict(json.loads(text))


def text_of(value: Any, write: Callable[[Any], str] = str) -> str:
    """Return the text of an exception or a value, even of one that cannot give it."""
    try:
        return write(value)
    except Exception as error:
        return f"<{type(value).__name__}: {type(error).__name__}>"
