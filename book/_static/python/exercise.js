/* Exercises that are solved on the page: an editor, a check, and what the check says. */

import { BUSY, ENDINGS, element, makeEditor, marked, megabytes, python } from "./cells.js";
import { Ended, core, isKept, isMemory, obstacle, weight } from "./kernel.js";
import { Notebook } from "./notebook.js";
import * as store from "./store.js";

const HERE = new URL(".", import.meta.url);
const { kernel } = python;
const cells = new Map();
const notebooks = new Map();

const topicOf = (name) => name.split("-")[0];

function notebookOf(topic) {
  if (!notebooks.has(topic)) {
    const address = new URL(`notebooks/${topic}.json`, HERE);
    const read = fetch(address, { cache: "no-cache" }).catch(() => ({ status: "no answer" })).then(async (answer) => {
      if (!answer.ok) throw new Error(`The notebook of this assignment could not be loaded (${answer.status}). Connect to the network, and try again.`);
      return new Notebook(await answer.text());
    });
    read.catch(() => notebooks.delete(topic));
    notebooks.set(topic, read);
  }
  return notebooks.get(topic);
}

/** Return the cells that check an answer, as pairs of a name and its source: imports, others above, itself, tests. */
function planOf(notebook, name, source, others, tests) {
  const answer = (each) => [each, store.load(each).text ?? notebook.source(each)];
  return [answer(notebook.imports), ...others.map(answer), [name, source], ...tests.map((each) => [each, notebook.source(each)])];
}

function passes(name, source) {
  store.save(name, { text: store.load(name).text ?? source, passed: source });
  for (const code of document.querySelectorAll(`.exercise-code[data-answer="${name}"]`)) code.open = true;
}

/** A cell of an exercise on the page. */
class Cell {
  constructor(box) {
    this.box = box;
    this.name = box.id.slice("cell-".length);
    this.topic = topicOf(this.name);
    this.kind = ["answer", "run", "written"].find((kind) => box.classList.contains(`exercise-${kind}`));
    this.shown = box.querySelector("pre") ?? element("pre", { class: "exercise-kept", hidden: true });
    this.blank = (box.dataset.blank ?? this.shown.textContent).trimEnd();
    // what an answer begins with in place of the placeholder; it is checked on the first press
    this.begun = box.classList.contains("exercise-begun") ? this.blank : undefined;
    this.title = box.closest(".exercise").querySelector(".exercise-title").textContent.trim();
    this.label = this.title.split(" · ")[0];
    this.solution = box.parentElement.querySelector(`#cell-${this.name} ~ .exercise-solution`);
    this.hinted = box.nextElementSibling?.matches(".exercise-hints");
    this.build();
    this.show();
  }

  build() {
    const words = { answer: "Write the answer here", run: "Run it here", written: "Write the answer here" };
    this.hint = element("span", { class: "exercise-hint" });
    this.state = element("span", { class: "exercise-state" });
    this.opener = element("button", { type: "button", onclick: () => this.begin() }, this.begun ? "Run and check" : words[this.kind]);
    this.bar = element("div", { class: "exercise-bar" }, this.opener, this.state, this.hint);
    this.progress = element("progress", { max: 1, value: 0, "aria-label": "Loading Python", hidden: true });
    this.status = element("p", { role: "status", class: "exercise-status" });
    this.output = element("div", { class: "exercise-output", hidden: true, role: "group", tabindex: "0", "aria-label": "What the cell printed" });
    this.figures = element("div", { class: "exercise-figures" });
    if (this.kind === "written") this.box.append(this.shown);
    this.box.append(this.bar, this.progress, this.status, this.output, this.figures);
  }

  /** Say on the first button how much would be loaded. */
  async announce() {
    if (this.kind === "written" || this.editor) return;
    try {
      const parts = await kernel.list();
      const python = core(parts);
      if (!(await isKept(python)) && !this.editor && !this.state.textContent) this.hint.textContent = `Loads Python, ${megabytes(weight(python))} MB, once.`;
    } catch {
      this.hint.textContent = "";
    }
  }

  /** Show the answer that is kept, where it is kept, and whether the check has agreed with it. */
  show() {
    const { text, passed, wrong = [] } = store.load(this.name);
    const right = passed !== undefined && passed === text;
    this.box.classList.toggle("exercise-passed", right);
    const exercise = this.box.closest(".exercise");
    const answers = [...exercise.querySelectorAll(".exercise-answer")];
    const all = answers.length > 0 && answers.every((box) => box.classList.contains("exercise-passed"));
    let mark = exercise.querySelector(".exercise-mark");
    if (all && !mark) {
      mark = element("span", { class: "exercise-mark" }, element("span", { "aria-hidden": "true" }, " ✓"), element("span", { class: "visually-hidden" }, " (your answer agrees)"));
      exercise.querySelector(".exercise-title").append(mark);
    } else if (!all) mark?.remove();
    const own = text !== undefined && text.trimEnd() !== this.blank;
    if (text !== undefined && !this.editor) {
      if (this.shown.textContent !== text) this.shown.textContent = text;
      this.shown.hidden = !text;
      this.shown.tabIndex = 0; // it may scroll
      if (own && !this.begun) this.opener.textContent = "Go on here";
    }
    const verdict = right ? "✓ Your answer agrees." : passed !== undefined ? "Changed since it agreed." : "";
    const advice = ": save your answers as a notebook.";
    const place = store.keeps(this.name) ? own && "Kept in this browser." : (own || this.editor) && `Not kept in this browser${advice}`;
    this.state.textContent = [verdict, place].filter(Boolean).join(" ");
    if (this.state.textContent) this.hint.textContent = "";
    if (this.solution) this.solution.hidden = passed === undefined && wrong.length < ATTEMPTS;
  }

  /** Say a sentence, with what belongs to it, at once: a screen reader reads each change. */
  say(text, kind = "", ...more) {
    this.status.ariaLive = this.quiet ? "off" : "polite";
    this.status.replaceChildren(...marked(text), ...more);
    this.status.dataset.kind = kind;
  }

  /** Say what goes on; how far it is changes often, and is for the eye. */
  count(text, kind, far) {
    if (!this.far?.isConnected || this.status.firstChild.data !== text) this.say(text, kind, (this.far = element("span", { "aria-hidden": "true" })));
    this.far.textContent = far;
  }

  async begin() {
    await this.open();
    if (this.begun && this.editor) this.run();
  }

  async open() {
    if (this.opened) return;
    const why = this.kind === "written" ? "" : obstacle();
    if (why) {
      this.say(why, "error", ...this.offer(", for JupyterLab."));
      return;
    }
    this.opened = true;
    try {
      this.notebook = await notebookOf(this.topic);
    } catch (error) {
      this.opened = false;
      this.say(error.message, "error");
      return;
    }
    const holder = (this.holder = element("div", { class: "exercise-editor" }));
    this.original = this.notebook?.source(this.name) ?? this.blank;
    const kept = store.load(this.name).text;
    this.editor = await makeEditor(
      {
        parent: holder,
        text: kept ?? this.begun ?? (this.kind === "written" ? "" : this.original),
        label: `${this.title}: ${this.kind === "written" ? "your answer" : "your code"}`,
        change: (text) => this.changed(text),
        run: () => this.run(),
      },
      this.kind !== "written",
    );
    for (const part of this.box.querySelectorAll(":scope > div[class*=highlight-], :scope > p:not(.exercise-status), .exercise-kept")) part.hidden = true;
    this.box.prepend(holder);
    this.tools();
    this.show();
    this.editor.focus();
    if (this.kind !== "written") this.prepare();
  }

  tools() {
    const button = (text, act, attributes = {}) => element("button", { type: "button", onclick: act, ...attributes }, text);
    this.opener.remove();
    const keys = this.kind !== "written" && matchMedia("(hover: hover)").matches;
    this.hint.textContent = keys ? "Shift+Enter runs the cell; Escape, then Tab, leaves it." : "";
    this.runner = button(this.kind === "answer" ? "Run and check" : "Run", () => this.run(), { class: "exercise-run", title: "Shift+Enter" });
    this.stopper = button("Stop", () => kernel.stop(), { hidden: true });
    this.aboveRunner = button("Run all above", () => this.run(true));
    this.restorer = button("Start again", () => this.restore());
    this.previewer = button("Preview", () => this.preview());
    const buttons = this.kind === "written" ? [this.previewer, this.restorer] : [this.runner, this.stopper, this.aboveRunner, this.restorer];
    this.bar.prepend(...buttons);
    const seen = () => ({ Code: this.editor.text, Message: `${this.status.textContent}\n${this.output.textContent}`.trim() });
    if (this.kind === "answer" && window.reportLink) this.bar.append(window.reportLink(this.box.id, "Something wrong here?", seen));
  }

  /** Show an answer in words as people will read it, or let the reader go on. */
  async preview() {
    if (!this.holder.hidden) {
      this.rendered ??= element("div", { class: "exercise-preview", role: "region", "aria-label": `${this.title}: preview` });
      try {
        const { render } = await import("./preview.js");
        await render(this.editor.text.trim() || "Nothing is written yet.", this.rendered);
      } catch {
        this.say("The preview could not be loaded. Are you still connected?", "error");
        return;
      }
      this.holder.before(this.rendered);
    } else this.rendered.remove();
    this.holder.hidden = !this.holder.hidden;
    this.previewer.textContent = this.holder.hidden ? "Go on writing" : "Preview";
    this.say(this.holder.hidden ? "This is how people will read your answer." : "");
  }

  changed(text) {
    store.save(this.name, { text });
    this.editor.mark?.(null);
    this.show();
  }

  /** Put the empty answer back; the reader's own stays one press away. */
  restore() {
    if (this.holder.hidden) this.preview();
    const before = this.editor.text;
    this.editor.text = this.kind === "written" ? "" : this.original;
    this.changed(this.editor.text);
    this.output.hidden = true;
    const undo = () => ((this.editor.text = before), this.changed(before), this.editor.focus(), this.say("Your answer is back."));
    this.say("The cell is as it was at the beginning. ", "", element("button", { type: "button", onclick: undo }, "Undo"));
  }

  async prepare() {
    try {
      await kernel.start((come, total) => this.loading(come, total));
      this.progress.hidden = true;
      if (this.status.dataset.kind === "loading") this.say("Python is ready.");
    } catch (error) {
      this.progress.hidden = true;
      if (!(error instanceof Ended)) this.failed(error);
    }
  }

  loading(come, total, what = "Python") {
    this.progress.hidden = false;
    this.progress.value = come / total;
    if (come < total) this.count(`Loading ${what}, once`, "loading", `: ${megabytes(come)} of ${megabytes(total)} MB.`);
    else this.say(`Starting ${what}.`, "loading");
  }

  failed(error) {
    const why = isMemory(error) ? "There is not enough free memory for Python in this page. Close other pages, or use JupyterLab." : error.message;
    this.say(why, "error", ...this.offer("."));
  }

  /** Lead to the notebook in which the same can be done. */
  offer(end) {
    return [" ", element("a", { href: new URL(`notebooks/${this.topic}.json`, HERE), download: `${this.topic}.ipynb` }, "Here is the notebook"), end];
  }

  /** Return the cells to be run, as pairs of a name and its source. */
  plan(above) {
    const { notebook } = this;
    const before = above ? notebook.above(this.name).filter((name) => name !== notebook.imports) : [];
    const tests = this.kind === "answer" ? notebook.tests(this.name) : [];
    return planOf(notebook, this.name, this.editor.text, before, tests);
  }

  /** Forget what the last run has said. */
  clear() {
    this.output.textContent = "";
    this.output.hidden = true;
    this.figures.replaceChildren();
    this.editor?.mark?.(null);
  }

  async run(above = false) {
    if (this.kind === "written") return;
    if (python.running) {
      if (!this.runner.disabled) this.say(BUSY, "error");
      return;
    }
    python.running = true;
    this.clear();
    this.runner.disabled = true;
    this.stopper.hidden = false;
    try {
      await kernel.start((come, total) => this.loading(come, total));
      this.progress.hidden = true;
      this.clock();
      const source = this.editor.text;
      const plan = this.plan(above);
      let answer = await kernel.run(plan, (text) => this.print(text));
      if (FIGURES.includes(answer.missing) && (await kernel.list()).plots) {
        clearInterval(this.ticking);
        await kernel.extend((come, total) => this.loading(come, total, "what figures need"));
        this.progress.hidden = true;
        this.output.textContent = "";
        this.clock();
        answer = await kernel.run(plan, (text) => this.print(text));
      }
      this.report(answer, source);
    } catch (error) {
      this.progress.hidden = true;
      if (error instanceof Ended)
        this.say("Stopped. The names of the cells that ran before are gone: “Run all above” brings them back.");
      else this.failed(error);
    } finally {
      clearInterval(this.ticking);
      python.running = false;
      this.runner.disabled = false;
      this.stopper.hidden = true;
      if (document.activeElement === document.body) this.runner.focus({ preventScroll: true });
      this.reveal();
    }
  }

  /** Bring what was said onto the screen, if the reader is still here. */
  reveal() {
    const { top, bottom } = this.box.getBoundingClientRect();
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (top < innerHeight && bottom > 0) this.status.scrollIntoView({ block: "nearest", behavior: still ? "instant" : "smooth" });
  }

  clock() {
    const begin = performance.now();
    this.count("Running", "running", ".");
    this.ticking = setInterval(() => this.count("Running", "running", `, ${Math.round((performance.now() - begin) / 1000)} s.`), 1000);
  }

  print(...parts) {
    this.output.hidden = false;
    this.output.append(...parts);
  }

  report(answer, source) {
    clearInterval(this.ticking);
    for (const { source, description } of answer.figures ?? []) this.figures.append(element("img", { src: source, alt: description }));
    if (answer.status === "ended") this.say(ENDINGS[answer.reason] ?? `Python ended: ${answer.reason}.`, "error");
    else if (answer.status === "error") this.explain(answer, source);
    else if (this.kind === "answer") {
      // what was typed while the check ran stays
      passes(this.name, source);
      this.show();
      this.say("✓ Your answer agrees with the reference.", "right");
    } else this.say(answer.figures?.length ? "Done: the figure is below." : "Done.");
  }

  explain(answer, source) {
    const { kind, line, cell } = answer;
    const text = answer.text.replace(/^✗ \w+:/, `✗ ${this.label}:`);
    const lines = text.endsWith("\n") ? text : `${text}\n`;
    this.print(...(kind === "CheckFailed" ? marked(lines) : [lines])); // a traceback shows code as it is
    if (kind === "CheckFailed") {
      const cause = text.match(/^Likely cause: (.*)$/m)?.[1];
      const { wrong = [] } = store.load(this.name);
      const written = source.trimEnd() !== this.blank && !wrong.includes(source);
      if (this.solution && written) store.save(this.name, { wrong: [...wrong, source].slice(-ATTEMPTS) });
      this.show();
      const help = [!cause && this.hinted ? " Hints are below the cell." : "", this.solution && !this.solution.hidden ? " A solution is below the cell." : ""];
      this.say(cause ? `✗ Not yet. Likely cause: ${cause}` : text.split("\n")[0], "wrong", ...help);
    } else if (cell !== this.name) {
      const where = this.notebook.tests(this.name).includes(cell) ? "The check" : `The cell of ${cells.get(cell)?.label ?? cell} above`;
      this.say(`${where} ends with an error: ${kind}.`, "error");
    } else {
      const advice = kind === "NameError" ? " If a cell above defines this name: “Run all above”." : "";
      this.say(line ? `${kind} in line ${line}.` : `${kind}.`, "error", advice);
      if (line) this.editor?.mark?.(line, text.trim().split("\n").pop());
    }
  }
}

/** Modules that the part for figures has. */
const FIGURES = ["matplotlib", "mpl_toolkits"];

/** So many different wrong answers come before a solution. */
const ATTEMPTS = 3;

/** Check answers that are kept, one after the other, and `tell` how many agree. */
async function checkAll(notebook, names, tell) {
  if (python.running) return tell(BUSY);
  python.running = true;
  const wrong = [];
  try {
    for (const [number, name] of names.entries()) {
      const cell = cells.get(name);
      const source = store.load(name).text;
      tell("Checking", ` ${number + 1} of ${names.length}.`);
      await kernel.start((come, total) => tell("Loading Python, once", `: ${megabytes(come)} of ${megabytes(total)} MB.`));
      cell?.clear();
      const answer = await kernel.run(planOf(notebook, name, source, [], notebook.tests(name)), (text) => cell?.print(text));
      if (answer.status !== "ok") wrong.push(name);
      else if (!cell) passes(name, source);
      if (cell) {
        // a screen reader hears all results at the end, together
        cell.quiet = true;
        cell.report(answer, source);
        cell.quiet = false;
      }
    }
    const link = (name) => (cells.has(name) ? element("a", { href: `#cell-${name}` }, cells.get(name).label) : name);
    const rest = wrong.flatMap((name, number) => [number ? ", " : " Not yet: ", link(name)]);
    tell(`${names.length - wrong.length} of ${names.length} answers agree.`, "", ...rest, rest.length ? "." : "");
  } catch (error) {
    tell(error instanceof Ended ? "Stopped." : error.message);
  } finally {
    python.running = false;
  }
}

/** Offer to save all answers of an assignment as its notebook, and to take them from one. */
function addNotebookTools(exercise) {
  const topic = topicOf(exercise.id.slice("exercise-".length));
  const said = element("span", { role: "status", class: "exercise-hint" });
  const far = element("span", { "aria-hidden": "true" });
  const tell = (text, count = "", ...more) => {
    if (said.firstChild?.data !== text) said.replaceChildren(text, far, ...more);
    far.textContent = count;
  };
  const guard = (act) => async (event) => {
    try {
      await act(event);
    } catch (error) {
      tell(error.message);
    }
  };
  const save = guard(async () => {
    const notebook = await notebookOf(topic);
    const answers = Object.fromEntries(notebook.names.map((name) => [name, store.load(name).text]).filter(([, text]) => text));
    const address = URL.createObjectURL(new Blob([notebook.filled(answers)], { type: "application/x-ipynb+json" }));
    element("a", { href: address, download: `${topic}.ipynb` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
    tell(`${topic}.ipynb has your answers, and can be submitted.`);
  });
  const checker = element("button", { type: "button", hidden: true });
  const file = element("input", { type: "file", accept: ".ipynb", hidden: true });
  file.addEventListener(
    "change",
    guard(async () => {
      const notebook = await notebookOf(topic);
      const answers = notebook.answers(await file.files[0].text());
      file.value = "";
      for (const [name, text] of Object.entries(answers)) {
        store.save(name, { text });
        refresh(name);
      }
      const count = Object.keys(answers).length;
      tell(count ? `${count} answers were taken from the notebook.` : "This notebook has no answers yet.");
      const checked = Object.keys(answers).filter((name) => notebook.tests(name).length);
      checker.hidden = !checked.length || Boolean(obstacle());
      checker.textContent = "Check these answers";
      checker.onclick = async () => {
        if (checker.textContent === "Stop") return kernel.stop();
        checker.textContent = "Stop";
        await checkAll(notebook, checked, tell);
        checker.textContent = "Check these answers";
      };
    }),
  );
  exercise.append(
    element(
      "details",
      { class: "exercise-notebook" },
      element("summary", {}, "Notebook"),
      element("button", { type: "button", onclick: save }, "Save my answers as a notebook"),
      element("button", { type: "button", onclick: () => file.click() }, "Take answers from a notebook"),
      checker,
      file,
      said,
    ),
  );
}

/** Show an answer that has changed elsewhere. */
function refresh(name) {
  const cell = cells.get(name);
  if (!cell) return;
  const { text } = store.load(name);
  if (cell.editor && text !== undefined && cell.editor.text !== text) cell.editor.text = text;
  cell.show();
}

for (const box of document.querySelectorAll(".exercise-cell")) {
  const cell = new Cell(box);
  cells.set(cell.name, cell);
}
document.querySelectorAll(".exercise").forEach(addNotebookTools);
store.listen(refresh);

// What a press would load is told when the first exercise comes into view.
const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    seen.unobserve(entry.target);
    if (!obstacle()) cells.get(entry.target.id.slice("cell-".length)).announce();
  }
});
cells.forEach((cell) => seen.observe(cell.box));
