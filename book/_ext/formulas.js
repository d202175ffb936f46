/* Typeset formulas: node formulas.js FOLDER-OF-MATHJAX
   reads a JSON list of [tex, whether it is displayed], writes {formulas, css}. A formula that cannot
   be typeset comes back as {error}. */
"use strict";
const path = require("path");

const folder = process.argv[2];

async function typeset(MathJax, tex, display) {
  try {
    return MathJax.startup.adaptor.outerHTML(await MathJax.tex2chtmlPromise(tex, { display }));
  } catch (error) {
    return { error: error.message };
  }
}

async function main() {
  const MathJax = await require(path.join(folder, "node-main.js")).init({
    loader: { load: ["input/tex", "output/chtml", "a11y/assistive-mml"], require },
    // an unknown command is an error, not red text
    tex: { packages: { "[-]": ["noundefined", "noerrors"] }, formatError: (jax, error) => { throw error; } },
    // words in a formula have the formula's font: here nobody can measure another
    chtml: { matchFontHeight: false, mtextInheritFont: false, fontURL: "." },
    startup: { typeset: false },
  });
  let text = "";
  for await (const part of process.stdin.setEncoding("utf8")) text += part;
  const formulas = [];
  for (const [tex, display] of JSON.parse(text)) formulas.push(await typeset(MathJax, tex, display));
  const css = MathJax.startup.adaptor.textContent(MathJax.chtmlStylesheet());
  process.stdout.write(JSON.stringify({ formulas, css }));
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
