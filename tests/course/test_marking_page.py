"""One question across the class: keys of a browser give points, which the gradebook has at once."""

import threading
from typing import Any

import pytest
import requests
from toy_course import MARKS

from tools.classroom import marking
from tools.classroom.backend import Backend
from tools.layout import Course
from tools.terminal import ToolError

pytestmark = MARKS


def test_keys_give_points(copied: Any, small: Course, browser: Any) -> None:
    with pytest.raises(ToolError, match="nothing of toy has been graded"):
        marking.server(small, "toy")
    made = copied()
    [question] = marking.questions(made, "toy")
    waiting = [each["student"] for each in marking.answers(made, "toy", question)]
    assert waiting[0] == "ada-all-correct"
    assert "ben-blank" not in waiting
    http, address = marking.server(made, "toy")
    threading.Thread(target=http.serve_forever, daemon=True).start()
    try:
        page = browser.new_page()
        page.goto(address)
        assert page.locator("aside").inner_text().strip() == "4 points"
        assert page.locator("article").count() == len(waiting)

        def press(key: str) -> None:
            with page.expect_response(address):
                page.keyboard.press(key)

        press("3")
        page.keyboard.press("9")  # there are no 9 points
        press("2")
        page.keyboard.press("ArrowUp")
        press(".")
        page.get_by_text(f"2 of {len(waiting)} answers have points.").wait_for()
        page.get_by_label(f"Comment for {waiting[2]}").focus()  # who has no points
        page.keyboard.type("1 word.")  # which gives no point
        press("Tab")
        page.close()
        body = {"student": waiting[2], "points": 5, "comment": ""}
        assert requests.post(address, json=body, timeout=9).status_code == 400
        assert requests.get(address[:-1], timeout=9).status_code == 404
    finally:
        http.shutdown()
        http.server_close()
    with Backend(made).gradebook() as book:
        grades = [book.find_grade("toy-why", "toy", "toy", student) for student in waiting[:3]]
        assert [grade.manual_score for grade in grades] == [3, 2.5, None]
        assert [bool(grade.needs_manual_grade) for grade in grades] == [False, False, True]
        comment = book.find_comment("toy-why", "toy", "toy", waiting[2])
        assert comment.manual_comment == "1 word."
