/* An assignment's notebook: its cells by name, and the reader's answers put in and taken out. */

const UNFILLED = /^(?:\s|YOUR ANSWER HERE)*$/;

export const nameOf = (cell) => cell.metadata.nbgrader?.grade_id ?? cell.id;
/** Return the text of a cell with the ends of lines that an editor keeps. */
export const sourceOf = (cell) => [].concat(cell.source).join("").replace(/\r\n?/g, "\n");

const isAnswer = (cell) => Boolean(cell.metadata.nbgrader?.solution);
const isTest = (cell) => cell.cell_type === "code" && Boolean(cell.metadata.nbgrader?.grade) && !isAnswer(cell);

/** Lines with their ends, as notebooks store text. */
const lines = (text) => text.match(/[^\n]*\n|[^\n]+$/g) ?? [];

/** The notebook of an assignment as it was released. */
export class Notebook {
  constructor(text) {
    this.text = text;
    this.content = JSON.parse(text);
    this.cells = new Map(this.content.cells.map((cell) => [nameOf(cell), cell]));
    this.names = [...this.cells.keys()];
  }

  source(name) {
    return sourceOf(this.cells.get(name));
  }

  /** Return the names of the tests that stand below an answer; they see what the reader may see. */
  tests(name) {
    const below = this.names.slice(this.names.indexOf(name) + 1);
    const end = below.findIndex((each) => !isTest(this.cells.get(each)));
    return below.slice(0, end < 0 ? undefined : end).filter((each) => !each.endsWith("-hidden"));
  }

  /** Return the names of the code cells above a cell, without tests. */
  above(name) {
    return this.names.slice(0, this.names.indexOf(name)).filter((each) => {
      const cell = this.cells.get(each);
      return cell.cell_type === "code" && !isTest(cell);
    });
  }

  /** Return the first cell of code, which imports what the others use. */
  get imports() {
    return this.names.find((each) => this.cells.get(each).cell_type === "code");
  }

  /** Return the text of the notebook with these answers in their cells; all else stays as it is. */
  filled(answers) {
    const content = structuredClone(this.content);
    for (const cell of content.cells) {
      const answer = answers[nameOf(cell)];
      if (isAnswer(cell) && answer !== undefined) cell.source = lines(answer);
    }
    return `${JSON.stringify(content, null, 1)}\n`;
  }

  /** Return the answers in a notebook that a reader hands over, by cell. */
  answers(text) {
    let other;
    try {
      other = new Notebook(text);
    } catch {
      throw new Error("This file is not a notebook: choose a file whose name ends in .ipynb.");
    }
    const answers = {};
    for (const [name, cell] of this.cells) {
      const found = isAnswer(cell) && other.cells.get(name);
      if (!found) continue;
      const source = sourceOf(found);
      if (source !== sourceOf(cell) && !UNFILLED.test(source)) answers[name] = source;
    }
    if (!this.names.filter((name) => isAnswer(this.cells.get(name))).some((name) => other.cells.has(name)))
      throw new Error("This notebook has no cell of this assignment: choose the notebook of this chapter.");
    return answers;
  }
}
