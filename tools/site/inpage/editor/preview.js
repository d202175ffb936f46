/* How people will read an answer in words: Markdown, with formulas that MathJax typesets. */

import { Marked } from "marked";

const HERE = new URL(".", import.meta.url);
const FORMULA = /^(?:\$\$([^]+?)\$\$|(\\begin\{(\w+\*?)\}[^]+?\\end\{\3\})|\$(?!\s)((?:\\.|[^$\\])+?)(?<!\s)\$(?!\d))/;

const escaped = (text) => text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt()};`);

/** Take formulas out of the Markdown, in which `_` and `*` mean something else. */
const formula = (name, level, begins) => ({
  name,
  level,
  start: (source) => source.match(begins)?.index,
  tokenizer(source) {
    const found = source.match(FORMULA);
    if (!found || (level === "block" && found[4])) return undefined;
    return { type: name, raw: found[0], tex: found[1] ?? found[2] ?? found[4], displayed: !found[4] };
  },
  renderer: ({ tex, displayed }) => `<span class="exercise-formula"${displayed ? ' data-displayed tabindex="0"' : ""}>${escaped(tex)}</span>`,
});

const markdown = new Marked({
  extensions: [formula("display", "block", /\n\$\$|\n\\begin\{/), formula("formula", "inline", /\$|\\begin\{/)],
  renderer: {
    // an answer may come from another person's file: it cannot act, and asks for nothing
    html: ({ text }) => escaped(text),
    image: ({ text }) => `[${escaped(text || "a picture")}]`,
    link({ href, tokens }) {
      const text = this.parser.parseInline(tokens);
      return /^(?:https?:|mailto:)/i.test(href) ? `<a href="${escaped(href)}">${text}</a>` : text;
    },
    // the titles of the page are its own
    heading({ tokens }) {
      return `<p><strong>${this.parser.parseInline(tokens)}</strong></p>`;
    },
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
  },
});

let mathjax;

/** Load the MathJax of the build, which has typeset the formulas of the page. */
function loadMathJax() {
  mathjax ??= new Promise((resolve, reject) => {
    window.MathJax = {
      loader: { load: ["input/tex", "output/chtml", "a11y/assistive-mml", "ui/safe"] },
      chtml: { matchFontHeight: false, mtextInheritFont: false, fontURL: new URL("../math", HERE).href },
      startup: { typeset: false, ready: () => (MathJax.startup.defaultReady(), MathJax.startup.promise.then(resolve, reject)) },
    };
    const script = document.createElement("script");
    script.src = new URL("mathjax/startup.js", HERE);
    script.onerror = reject;
    document.head.append(script);
  }).catch((error) => {
    mathjax = undefined;
    throw error;
  });
  return mathjax;
}

/** Show the text of an answer in an element. */
export async function render(text, target) {
  const made = document.createElement("div");
  made.innerHTML = markdown.parse(text);
  const places = [...made.querySelectorAll(".exercise-formula")];
  if (places.length) {
    await loadMathJax();
    for (const place of places) place.replaceChildren(await MathJax.tex2chtmlPromise(place.textContent, { display: "displayed" in place.dataset }));
    // the style sheet has the characters of these formulas then
    MathJax.startup.document.clear();
    MathJax.startup.document.updateDocument();
  }
  target.replaceChildren(...made.childNodes);
}
