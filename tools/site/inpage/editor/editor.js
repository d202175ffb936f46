/* The editor of the exercises: CodeMirror 6 with Python, in the colors of the page. */

import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { HighlightStyle, bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { setDiagnostics } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const theme = EditorView.theme({
  "&": { backgroundColor: "var(--pst-color-background)", color: "var(--pst-color-text-base)" },
  "&.cm-focused": { outline: "none" },
  ".cm-content": { caretColor: "var(--pst-color-text-base)", fontFamily: "var(--pst-font-family-monospace, monospace)" },
  ".cm-cursor": { borderLeftColor: "var(--pst-color-text-base)" },
  ".cm-gutters": { backgroundColor: "var(--pst-color-surface)", border: "0", color: "var(--pst-color-text-muted)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--pst-color-primary) 4%, transparent)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "color-mix(in srgb, var(--pst-color-primary) 25%, transparent) !important",
  },
  ".cm-diagnostic": { color: "var(--pst-color-text-base)" },
  ".cm-tooltip": { backgroundColor: "var(--pst-color-surface)", borderColor: "var(--pst-color-border)" },
  ".cm-scroller": { lineHeight: "1.5", overflow: "auto" },
});

// The classes are those of the page's code blocks, so that both have the same colors.
const style = HighlightStyle.define([
  { tag: [tags.keyword, tags.controlKeyword, tags.definitionKeyword, tags.moduleKeyword, tags.operatorKeyword], class: "k" },
  { tag: [tags.string, tags.special(tags.string)], class: "s" },
  { tag: tags.number, class: "mi" },
  { tag: tags.comment, class: "c1" },
  { tag: [tags.bool, tags.null], class: "kc" },
  { tag: tags.function(tags.definition(tags.variableName)), class: "nf" },
]);

/** Make an editor in `parent`; `change` hears its text, `run` is called by Control and Enter. */
export function createEditor({ parent, text, label, change, run }) {
  let quiet = false;
  const keys = ["Mod-Enter", "Shift-Enter"].map((key) => ({ key, run: () => (run(), true), preventDefault: true }));
  const extensions = [
    keymap.of([...keys, ...defaultKeymap, ...historyKeymap, indentWithTab]),
    lineNumbers(),
    history(),
    drawSelection(),
    indentOnInput(),
    indentUnit.of("    "),
    bracketMatching(),
    highlightActiveLine(),
    python(),
    syntaxHighlighting(style),
    theme,
    EditorView.contentAttributes.of({
      "aria-label": `${label}. Tab indents; Escape, then Tab, leaves the editor.`,
      autocapitalize: "off",
      autocorrect: "off",
      spellcheck: "false",
      tabindex: "0",
    }),
    EditorView.editorAttributes.of({ class: "highlight" }),
    EditorView.updateListener.of((update) => {
      if (update.docChanged && !quiet) change(update.state.doc.toString());
    }),
  ];
  const view = new EditorView({ parent, state: EditorState.create({ doc: text, extensions }) });
  return {
    get text() {
      return view.state.doc.toString();
    },
    set text(value) {
      quiet = true;
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: value } });
      quiet = false;
    },
    /** Mark an error in a line; without a line, remove the mark. */
    mark(line, message) {
      const { doc } = view.state;
      const known = line && line <= doc.lines ? doc.line(line) : null;
      const found = known ? [{ from: known.from, to: known.to, severity: "error", message }] : [];
      view.dispatch(setDiagnostics(view.state, found));
    },
    focus: () => view.focus(),
  };
}
