/* A page that computes: its cells run in the site's own Python, and figure, text and numbers follow what the reader changes. */

import { BUSY, ENDINGS, element, loading, makeEditor, python } from "./cells.js";
import { Ended, obstacle } from "./kernel.js";

const HERE = new URL(".", import.meta.url);
let page;

/** Run the page whose button was pressed. */
export async function begin(button, name) {
  page ??= new Live(button, name);
  await page.run(0);
}

/** Return the sources that the reader has changed, by what the page prints in their place; what is damaged is left out. */
function kept(name) {
  try {
    const found = JSON.parse(localStorage.getItem(name).replace(/^[^{]*/, ""));
    return Object.fromEntries(Object.entries(found).filter(([, source]) => typeof source === "string"));
  } catch {
    return {}; // nothing is kept, or the browser keeps nothing
  }
}

/** Keep the sources that the reader has changed, nothing of a page as printed; tell whether the browser keeps them. */
function keep(name, sources) {
  try {
    if (Object.keys(sources).length) localStorage.setItem(name, JSON.stringify(sources));
    else localStorage.removeItem(name);
    return true;
  } catch {
    return false;
  }
}

/** A code cell of the page: its editor, its knobs, and what it shows. */
class Cell {
  constructor(live, number, content, knobs) {
    Object.assign(this, content, { live, number, knobs });
    this.printed = this.source;
    this.box = document.getElementById(this.id);
    this.output = this.box?.querySelector(".cell_output");
    this.images = [...(this.output?.querySelectorAll("img") ?? [])];
    this.shown = this.images.map((image) => [image.getAttribute("src"), image.alt]);
    this.before = this.output?.cloneNode(true);
    this.buttons = [];
  }

  /** Put an editor in the place of the code, and a stepper for each knob above it. */
  async open() {
    const input = this.box?.querySelector(".cell_input");
    if (this.out && this.box) this.box.append(element("p", { class: "live-note" }, "This cell needs PyTorch: what it shows is as printed."));
    if (this.out || !input) return;
    const holder = element("div", { class: "exercise-editor" });
    this.editor = await makeEditor(
      {
        parent: holder,
        text: this.source,
        label: `Code cell ${this.number + 1} of this page`,
        change: (text) => this.live.changed(this, text),
        run: () => this.live.run(this.number),
      },
      true,
    );
    for (const part of input.children) part.hidden = true;
    input.append(holder);
    if (this.knobs.length) this.box.prepend(element("div", { class: "live-knobs" }, ...this.knobs.map((knob) => this.stepper(knob))));
  }

  stepper(knob) {
    const value = element("output");
    const step = (by) => () => {
      // from a value that is not listed, to the first one or the last
      const place = Math.max(knob.values.indexOf(valueIn(this.source, knob)), by < 0 ? 0 : -1) + by;
      this.set(knob, knob.values.at(place % knob.values.length));
      return this.live.run(this.number);
    };
    const button = (text, label, by) => element("button", { type: "button", "aria-label": `${label} value of ${knob.name}`, onclick: step(by) }, text);
    const knobs = element("span", { class: "live-knob", role: "group", "aria-label": knob.name }, button("‹", "previous", -1), value, button("›", "next", 1));
    this.buttons.push(() => {
      const now = valueIn(this.source, knob);
      value.textContent = `${knob.name} = ${now ?? "…"}`;
      knobs.inert = now === undefined; // its line is gone
    });
    return knobs;
  }

  set(knob, value) {
    this.source = this.source.replace(pattern(knob), (all, head, old) => head + value + (old.match(/\s*$/)?.[0] ?? ""));
    if (this.editor) this.editor.text = this.source;
    this.live.changed(this, this.source);
  }

  /** Show what a run has printed and drawn. */
  show(text, figures) {
    if (!this.output && (text || figures.length) && this.box) this.box.append((this.output = element("div", { class: "cell_output docutils container" })));
    if (!this.output) return;
    const places = [...this.output.querySelectorAll("pre")];
    if (places.map((place) => place.textContent).join("") !== text) {
      places.slice(1).forEach((place) => place.remove());
      const first = places[0] ?? this.output.appendChild(element("pre", { class: "live-printed" }));
      first.textContent = text;
    }
    figures.forEach(({ source, description }, k) => {
      const image = this.images[k] ?? (this.images[k] = this.output.appendChild(element("img")));
      image.removeAttribute("height");
      image.src = source;
      image.alt = `${this.shown[k]?.[1] || description}${this.live.changes().length ? " (changed by you)" : ""}`;
    });
    this.images.forEach((image, k) => (image.hidden = k >= figures.length));
  }

  /** Bring back what the build has printed. */
  restore() {
    this.source = this.printed;
    if (this.editor) this.editor.text = this.source;
    this.editor?.mark?.(null);
    if (this.before) {
      const whole = this.before.cloneNode(true);
      this.output.replaceWith(whole);
      this.output = whole;
      this.images = [...whole.querySelectorAll("img")];
    } else {
      this.output?.remove();
      this.output = undefined;
      this.images = [];
    }
    this.buttons.forEach((show) => show());
  }
}

const pattern = (knob) => new RegExp(`^(${knob.name} = )([^#\\n]*)(?=# vary:)`, "m");
/** Find a statement in the text, where Markdown's marks are gone, and formulas and numbers have another form. */
const inText = (sentence) => {
  const any = "[^ \\n]*";
  const formula = (tex) => ["", ...(tex.replace(/\\[a-z]+/gi, "").match(/[\p{L}\d]/gu) ?? []), ""].join(any);
  const words = (part) => part.replace(/[*`]/g, "").replace(/[^\p{L}\d\s]/gu, ".").replace(/\s+/g, "\\s+");
  const parts = sentence.replace(/\{number\}`[^`]*`/g, "$$$$").split(/\$([^$]*)\$/);
  return new RegExp(parts.map((part, k) => (k % 2 ? formula(part) : words(part))).join(""), "u");
};
/** Return what stands for a knob in code. */
const valueIn = (source, knob) => source.match(pattern(knob))?.[2].trim();

export class Live {
  constructor(button, name) {
    Object.assign(this, { button, name, store: `optdl:page:${name}` });
    this.said = element("span", { role: "status" });
    this.stopper = element("button", { type: "button", hidden: true, onclick: () => python.kernel.stop() }, "Stop");
    this.restorer = element("button", { type: "button", hidden: true, onclick: () => this.asPrinted() }, "As printed");
    this.bar = element("div", { class: "live-bar", tabindex: "-1" }, this.said, this.stopper, this.restorer);
    this.numbers.forEach((number) => (number.dataset.printed = number.textContent));
  }

  /** The numbers of the text; those of captions come anew with what was printed. */
  get numbers() {
    return document.querySelectorAll("[data-number]");
  }

  /** Read the page's cells, with the files that they read, and make editors of them. */
  async open() {
    const read = async (path, as) => {
      const answer = await fetch(new URL(path, HERE), { cache: "no-cache" }).catch(() => ({ status: "no answer" }));
      if (!answer.ok) throw new Error(`A part of this page could not be loaded (${answer.status}). Connect to the network, and load the page again.`);
      return answer[as]();
    };
    const { cells, knobs, files, notes } = await read(`pages/${this.name}.json`, "json");
    const fetched = ([path, place]) => read(`files/${path}`, "arrayBuffer").then((bytes) => [place, new Uint8Array(bytes)]);
    this.files = await Promise.all(Object.entries(files).map(fetched));
    this.notes = notes;
    const own = kept(this.store);
    this.cells = cells.map((content, number) => new Cell(this, number, content, knobs.filter((knob) => knob.cell === number)));
    this.runnable = this.cells.filter((cell) => !cell.out);
    // it was once kept by the number of its cell
    for (const cell of this.runnable) if (!cell.verdict) cell.source = own[cell.printed] ?? own[cell.number] ?? cell.source;
    await Promise.all(this.cells.map((cell) => cell.open()));
    this.cells.forEach((cell) => cell.buttons.forEach((show) => show()));
    this.button.textContent = "Run this page again";
    this.button.closest("article, main").append(this.bar);
  }

  changed(cell, text) {
    cell.source = text;
    cell.editor?.mark?.(null);
    cell.buttons.forEach((show) => show());
    const { [cell.printed]: before, [cell.number]: older, ...others } = kept(this.store); // another tab may have changed another cell
    this.lost = !keep(this.store, text === cell.printed ? others : { ...others, [cell.printed]: text });
    this.restorer.hidden = false;
  }

  /** Return in words how what has run differs from the page as it is printed. */
  changes() {
    const words = ({ number, knobs, printed, ran = printed }) => {
      const turned = knobs.filter((knob) => valueIn(ran, knob) !== valueIn(printed, knob));
      const rest = turned.reduce((text, knob) => text.replace(pattern(knob), `$1${valueIn(ran, knob)} `), printed);
      const same = rest.replace(/ +/g, " ") === ran.replace(/ +/g, " ");
      return same ? turned.map((knob) => `${knob.name} = ${valueIn(ran, knob)}`) : [`cell ${number + 1} changed`];
    };
    return this.cells.flatMap(words);
  }

  say(text, ...more) {
    (this.bar.isConnected ? this.said : this.button.nextSibling).replaceChildren(text, ...more);
  }

  /** Run the cells from one on, and those above it that have not run as they stand; all if Python has been started anew. */
  async run(first) {
    if (this.next !== undefined) return (this.next = Math.min(this.next, first)); // a knob was turned meanwhile
    if (python.running) return this.say(BUSY);
    if (obstacle()) return this.say(` ${obstacle()}`);
    python.running = true;
    this.next = first;
    const telling = (what) => (come, total) => this.say(` ${loading(come, total, what)}`);
    try {
      if (!this.cells) await this.open();
      const { kernel } = python;
      await kernel.start(telling("Python"));
      if (this.worker !== kernel.worker) {
        for (const cell of this.cells) cell.ran = undefined;
        await kernel.extend(telling("what figures need"));
        await kernel.ask({ type: "files", files: this.files });
        this.worker = kernel.worker;
      }
      this.stopper.hidden = false;
      this.next = this.runnable.find((cell) => cell.number >= this.next || cell.ran !== cell.source).number;
      for (let cell; (cell = this.runnable.find(({ number }) => number >= this.next)); ) {
        this.next = cell.number + 1;
        this.say(`Cell ${cell.number + 1} of ${this.cells.length} runs.`);
        if (!(await this.runCell(cell)) && this.next > cell.number) return; // unless it was changed meanwhile
      }
      this.conclude();
    } catch (error) {
      this.say(error instanceof Ended ? "Stopped. The next run begins with the first cell." : error.message);
    } finally {
      python.running = false;
      this.next = undefined;
      if (document.activeElement === this.stopper) this.bar.focus({ preventScroll: true });
      this.stopper.hidden = true;
      this.restorer.hidden = !this.cells?.some((cell) => cell.source !== cell.printed);
    }
  }

  async runCell(cell) {
    let text = "";
    cell.ran = cell.source; // what is typed meanwhile has not run
    const request = { action: "cell", number: this.runnable.indexOf(cell), source: cell.source, numbers: cell.numbers, verdict: cell.verdict };
    const { answer } = await python.kernel.ask({ type: "run", request }, (more) => (text += more));
    if (answer.status === "ended") {
      python.kernel.stop();
      cell.show(text, []);
      throw new Error(ENDINGS[answer.reason] ?? `Python ended: ${answer.reason}.`);
    }
    const failed = answer.status === "error";
    if (!cell.verdict) cell.show(text + (failed ? answer.text : ""), answer.figures ?? []);
    if (failed) cell.ran = undefined;
    cell.holds = answer.holds;
    for (const number of this.numbers) {
      const value = answer.numbers?.[number.dataset.number.replace(/\s+/g, " ")];
      if (value === undefined) continue;
      number.textContent = value;
      number.classList.toggle("live-changed", value !== number.dataset.printed);
    }
    if (failed) {
      const line = answer.line ? ` in line ${answer.line}` : "";
      const name = `Cell ${cell.number + 1}`;
      this.say(cell.box ? element("a", { href: `#${cell.id}` }, name) : name, `: ${answer.kind}${line}. The cells below it have not run.`);
      if (answer.line) cell.editor?.mark?.(answer.line, answer.text.trim().split("\n").pop());
    }
    return !failed;
  }

  /** Say with what the page was computed, and which of its statements do not hold any more. */
  conclude() {
    const changes = this.changes();
    const how = changes.length ? `, with ${changes.join(", ")}` : ", as it is printed";
    const holds = Object.assign({}, ...this.cells.map((cell) => cell.holds));
    const texts = [...document.querySelectorAll("article :is(p, li, h2, h3)")];
    texts.forEach((text) => text.classList.remove("live-fallen"));
    const fallen = Object.keys(holds).filter((sentence) => !holds[sentence]).map((sentence) => {
      const form = inText(sentence);
      const text = texts.find((text) => form.test(text.textContent));
      text?.classList.add("live-fallen");
      return text?.textContent.match(form)[0] ?? sentence.replace(/[*`$]/g, "");
    });
    const all = Object.keys(holds).length;
    const count = !all ? "" : fallen.length ? ` ${fallen.length} of ${all} statements no longer hold: ` : all > 1 ? ` All ${all} statements of the page hold.` : " The statement of the page holds.";
    const lost = changes.length && this.lost ? ["This browser does not keep what you have changed."] : [];
    const notes = [...this.notes, ...lost].map((note) => ` ${note}`);
    this.say(`Computed on this page${how}.${count}`, ...(fallen.length ? [element("em", {}, fallen.map((sentence) => `“… ${sentence} …”`).join(", "))] : []), ...notes);
    dispatchEvent(new Event("progress")); // a guess in a figure moves with its axes
    for (const text of document.querySelectorAll(".cell_output figcaption")) {
      text.querySelector("em.live-changed")?.remove();
      if (changes.length) text.append(element("em", { class: "live-changed" }, " (changed by you)"));
    }
  }

  asPrinted() {
    this.cells.forEach((cell) => cell.restore());
    keep(this.store, {});
    for (const number of this.numbers) {
      number.textContent = number.dataset.printed;
      number.classList.remove("live-changed");
    }
    document.querySelectorAll("em.live-changed").forEach((mark) => mark.remove());
    document.querySelectorAll(".live-fallen").forEach((text) => text.classList.remove("live-fallen"));
    // the names of its session, and what is set in modules, are those of the changed cells
    if (this.worker === python.kernel.worker) python.kernel.stop();
    this.restorer.hidden = true;
    this.bar.focus({ preventScroll: true });
    dispatchEvent(new Event("progress"));
    this.say("As printed.");
  }
}
