"""HTML and JavaScript for the browser of whoever looks at the graded notebook."""

import base64
from typing import Any

import nbformat

from hostile.case import FULL, Build, Case, extra_cell
from hostile.course import Work

RUNS = "document.documentElement.classList.add('ran-{}')"
"""What each script does: it leaves its name on the page."""


def _script(name: str) -> str:
    return RUNS.format(name)


def _words(text: str, **more: Any) -> Build:
    def build(work: Work) -> None:
        work.honest()
        work.answer(words=text)
        work.cell("words").update(more)

    return build


def _metadata(work: Work) -> None:
    work.honest()
    breaks = f'"><script>{_script("metadata")}</script><img src="'
    work.nb.metadata["title"] = breaks
    work.nb.metadata["language_info"] = {"name": breaks, "pygments_lexer": breaks}
    state = {"state": {breaks: {}}, "version_major": 2, "version_minor": 0}
    work.nb.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": state}
    for cell in work.nb.cells:
        cell.metadata["tags"] = [breaks]
        cell.metadata["magics_language"] = breaks
        cell.metadata["alt"] = breaks


def _shown(*statements: str) -> Build:
    return extra_cell("from IPython.display import *\n" + "\n".join(statements))


_PICTURE = base64.b64encode(b"no picture").decode()

PAGES = [
    Case(
        "html-output",
        "`<script>` and handlers of events in an output",
        _shown(
            f'''display(HTML("""<script>{_script("html-output")}</script>"""))''',
            f'''display(HTML("""<img src=x onerror="{_script("html-handler")}">"""))''',
            f'''display(HTML("""<svg onload="{_script("html-svg")}"></svg>"""))''',
            f'''display(HTML("""<a href="javascript:{_script("html-link")}" id="go">x</a>"""))''',
            '''display(HTML("""</div></div></div><h1>Score: 13 / 13</h1>"""))''',
            "display(HTML('<iframe srcdoc=\"<script>parent." + "x=1</script>\"></iframe>'))",
            'display(HTML(\'<table border="1" class="dataframe"><tr><td>kept</td></tr></table>\'))',
        ),
        scores=FULL,
    ),
    Case(
        "javascript-output",
        "JavaScript as an output",
        _shown(f'''display(Javascript("""{_script("javascript-output")}"""))'''),
        scores=FULL,
    ),
    Case(
        "svg-output",
        "a picture (SVG) with a script in it",
        _shown(
            'text = \'\'\'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">'
            f"<script>{_script('svg-output').replace(chr(39), chr(38) + '#39;')}</script></svg>'''",
            "display(SVG(text))",
        ),
        scores=FULL,
    ),
    Case(
        "picture-output",
        "a picture (PNG) whose data and size break out of their attributes",
        _shown(
            f"breaks = '''\"><script>{_script('picture-output')}</script><img src=\"'''",
            "display({'image/png': breaks}, raw=True)",
            f"display({{'image/png': '{_PICTURE}'}}, raw=True,",
            "    metadata={'image/png': {'width': breaks, 'height': breaks, 'alt': breaks}})",
        ),
        scores=FULL,
    ),
    Case(
        "other-outputs",
        "scripts in Markdown, LaTeX, Mermaid and widgets as outputs",
        _shown(
            f"tag = '''<script>{_script('other-outputs')}</script>'''",
            "display(Markdown(tag))",
            "display(Latex('$x$' + tag))",
            "display({'text/vnd.mermaid': tag}, raw=True)",
            "display({'application/vnd.jupyter.widget-view+json': {'model_id': tag}}, raw=True)",
            "display({'text/html': tag}, raw=True, metadata={'text/html': {'isolated': True}})",
        ),
        scores=FULL,
    ),
    Case(
        "text-output",
        "`<script>` in printed text, in a value, and in an error",
        _shown(
            f"tag = '''<script>{_script('text-output')}</script>'''",
            "print(tag)",
            "display(tag)",
            "raise type(tag, (Exception,), {})(tag)",
        ),
        scores=FULL,
    ),
    Case(
        "words",
        "`<script>`, handlers and links to JavaScript in a written answer",
        _words(
            f"The answer <script>{_script('words')}</script>, <b>bold</b> and $a<b$.\n\n"
            f'<img src=x onerror="{_script("words-image")}">\n\n'
            f'<details open ontoggle="{_script("words-toggle")}">x</details>\n\n'
            f"[a link](javascript:{_script('words-link').replace(' ', '')})\n"
            f"```mermaid\n<script>{_script('words-mermaid')}</script>\n```\n\n"
            f"$$<script>{_script('words-math')}</script>$$\n\n"
        ),
        scores=FULL,
    ),
    Case(
        "words-disguised",
        "links to JavaScript in a written answer, disguised by entities and backslashes",
        _words(
            f"[one](&#106;ava&Tab;script:{_script('words-entity')})\n\n"
            f"[two](java\\\nscript:{_script('words-backslash')}) [three][x]\n\n"
            f"[x]: &#x6a;avascript&colon;{_script('words-reference')}\n"
        ),
        scores=FULL,
    ),
    Case(
        "no-attachment",
        "a written answer with a picture that is not attached",
        _words("![a picture](attachment:missing.png)"),
        scores=FULL,
    ),
    Case(
        "fence-language",
        "a written answer with a block of code whose language is an entity for a blank",
        _words("```&Tab;\nmy answer\n```"),
        scores=FULL,
    ),
    Case(
        "attachments",
        "a written answer with attachments that are no pictures",
        _words(
            "![x](attachment:x.png) ![y](attachment:y.png)",
            attachments=nbformat.from_dict(
                {
                    "x.png": {"text/html": f'"><script>{_script("attachments")}</script>'},
                    "y.png": {"image/png": f'"><script>{_script("attachments")}</script>'},
                }
            ),
        ),
        scores=FULL,
    ),
    Case(
        "page-metadata",
        "`<script>` in the metadata: the title, the language, tags, widgets",
        _metadata,
        scores=FULL,
    ),
]
