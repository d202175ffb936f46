/* What all cells have in common that run on a page: Python, an editor, and words. */

import { Kernel } from "./kernel.js";

/** The page's Python, and whether a cell is running. */
export const python = { kernel: new Kernel(), running: false };

export const megabytes = (bytes) => (bytes / 1e6).toFixed(1);

/** Say how far the loading of a part is. */
export const loading = (come, total, what) =>
  come < total ? `Loading ${what}, once: ${megabytes(come)} of ${megabytes(total)} MB.` : `Starting ${what}.`;

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** Return the parts of a message, with what stands between backticks as code. */
export const marked = (text) => text.split("`").map((part, number) => (number % 2 ? element("code", {}, part) : part));

/** A text field that can be used like the editor. */
function plainEditor({ parent, text, label, change, run }) {
  const field = element("textarea", { "aria-label": label, spellcheck: "false", autocapitalize: "off", class: "exercise-plain" });
  field.value = text;
  const grow = () => (field.rows = Math.min(40, field.value.split("\n").length + 1));
  field.addEventListener("input", () => (grow(), change(field.value)));
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey || event.shiftKey)) {
      event.preventDefault();
      run();
    }
  });
  grow();
  parent.append(field);
  return {
    get text() {
      return field.value;
    },
    set text(value) {
      field.value = value;
      grow();
    },
    mark: () => {},
    focus: () => field.focus(),
  };
}

/** Make an editor; where its script does not load, a plain text field. */
export async function makeEditor(options, code) {
  if (code) {
    try {
      const { createEditor } = await import("./editor.js");
      return createEditor(options);
    } catch {
      // the plain field does all that is needed
    }
  }
  return plainEditor(options);
}

export const BUSY = "Another cell is running: stop it, or wait for it.";

export const ENDINGS = {
  exit: "The cell has ended Python. It starts again with the next run; the names of earlier cells are gone.",
  recursion: "The cell called itself too often, and Python ended. It starts again with the next run.",
  memory: "Python has run out of memory, and ended. It starts again with the next run.",
};
