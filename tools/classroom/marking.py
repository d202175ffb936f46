"""Mark a written answer across the whole class: ``python -m tools.classroom.marking TOPIC``.

A page shows one question: the mark scheme beside, and below each other the answers of all students.
A digit gives the current answer its points, and goes on to the next; each key is saved in the
gradebook at once, where the formgrader has it, too. Only this machine can open the page.
"""

import json
import secrets
import webbrowser
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from rich.text import Text

from gradebox.feedback.formulas import rendered
from gradebox.feedback.page import SCHEME
from gradebox.nbgrader.cells import headings, name_of, of
from tools import notebooks
from tools.classroom import results
from tools.classroom.backend import Backend, MissingEntry
from tools.classroom.gradebook import template
from tools.layout import HERE, Course
from tools.terminal import ToolError, argument, command, console


class Question(NamedTuple):
    """A question that a person marks; the task and the mark scheme are HTML."""

    notebook: str
    cell: str
    title: str
    max_points: float
    task: str
    scheme: str


def questions(course: Course, topic: str) -> list[Question]:
    """Return the questions of an assignment whose answers a person reads."""
    result = []
    for name in course.notebooks(topic):
        source = notebooks.read(course.source(topic, name))
        titles, task = headings(source), ""
        for cell in source.cells:
            about = of(cell)
            if cell.cell_type == "markdown" and about.get("grade"):
                scheme = SCHEME.search(cell.source)
                texts = rendered(task), rendered(scheme[1] if scheme else "")
                cell_id = name_of(cell)
                result.append(Question(name, cell_id, titles[cell_id], about["points"], *texts))
            elif cell.cell_type == "markdown":
                task = cell.source
    return result


def answers(course: Course, topic: str, question: Question) -> list[dict[str, Any]]:
    """Return the answers that were written to a question, with their points and comments."""
    result = []
    with Backend(course).gradebook() as book:
        for row in results.rows(course, [topic]):
            path = course.executed(row.student, topic).get(question.notebook)
            place = question.cell, question.notebook, topic, row.student
            if not path or (grade := book.find_grade(*place)).auto_score is not None:
                continue  # nothing was handed in, or the text is as it was released
            # grading has made the text harmless
            text = notebooks.named(notebooks.read(path))[question.cell].source
            about = {"student": row.student, "who": str(row.person), "html": rendered(text)}
            points = None if grade.needs_manual_grade else grade.manual_score
            comment = book.find_comment(*place).manual_comment or ""
            result.append(about | {"points": points, "comment": comment})
    return result


def mark(course: Course, topic: str, question: Question, given: dict[str, Any]) -> None:
    """Save points, if there are any, and comment of an answer as the formgrader does."""
    points = given["points"] if given["points"] is None else float(given["points"])
    if points is not None and not 0 <= points <= question.max_points:
        raise ValueError(f"there are 0 to {question.max_points:g} points")
    place = question.cell, question.notebook, topic, str(given["student"])
    with Backend(course).gradebook() as book:
        grade, comment = book.find_grade(*place), book.find_comment(*place)
        if points is not None:
            grade.manual_score, grade.needs_manual_grade = points, False
        comment.manual_comment = str(given["comment"]) or None
        book.db.commit()


def server(course: Course, topic: str) -> tuple[HTTPServer, str]:
    """Return the server of the page, and its address: nobody else can guess it."""
    asked, token, nonce = questions(course, topic), secrets.token_urlsafe(), secrets.token_hex()
    if not asked:
        raise ToolError(f"{topic} has no question that a person marks", "choose another")
    if not results.rows(course, [topic]):
        raise ToolError(f"nothing of {topic} has been graded", f"make grade A={topic}")
    page = template("marking.html.j2")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            text = parse_qs(url.query).get("question", ["1"])[0]
            number = int(text) if text.isdecimal() else 0
            status, answer = 200, ""
            if url.path != f"/{token}" or not 1 <= number <= len(asked):
                status = 404
            elif self.command == "POST":
                try:
                    given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                    mark(course, topic, asked[number - 1], given)
                except (KeyError, TypeError, ValueError, MissingEntry) as error:
                    status, answer = 400, str(error)
            else:
                about = {"topic": topic, "questions": asked, "number": number, "nonce": nonce}
                about |= {"question": asked[number - 1]}
                answer = page.render(answers=answers(course, topic, asked[number - 1]), **about)
            self.send_response(status)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            policy = f"script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; img-src data:"
            policy = f"default-src 'none'; connect-src 'self'; {policy}"
            self.send_header("Content-Security-Policy", policy)
            self.end_headers()
            self.wfile.write(answer.encode())

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: Any) -> None:
            """Say nothing: the terminal is for what a person has to know."""

    http = HTTPServer(("127.0.0.1", 0), Handler)
    return http, f"http://127.0.0.1:{http.server_port}/{token}"


@command(
    argument("topic", metavar="TOPIC", help="an assignment that was graded"),
    argument("--no-browser", action="store_true", help="only print the address"),
)
def main(topic: str, no_browser: bool, course: Course = HERE) -> None:
    """Serve the page until Ctrl-C."""
    [topic] = course.choose([topic])
    http, address = server(course, topic)
    console.print(Text(f"Mark the answers at {address}"), soft_wrap=True)
    console.print(f"Ctrl-C ends it. Then write the new pages: make grade A={topic}")
    if not no_browser:
        webbrowser.open(address)
    http.serve_forever()
