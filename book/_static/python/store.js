/* The reader's answers, kept in this browser. Each has a name, its text and whether its check agreed. */

const PREFIX = "optdl:answer:";
const memory = new Map();

function storage(act) {
  try {
    return act(localStorage);
  } catch {
    return undefined;
  }
}

/** Tell whether the browser keeps anything. */
export const keeps = () => storage((kept) => (kept.setItem(`${PREFIX}?`, ""), kept.removeItem(`${PREFIX}?`), true)) ?? false;

/** Return what is kept of an answer: its text, and the text that passed its check. */
export function load(name) {
  const text = storage((kept) => kept.getItem(PREFIX + name)) ?? memory.get(name);
  try {
    return text ? JSON.parse(text) : {};
  } catch {
    return {};
  }
}

/** Keep what is known of an answer. */
export function save(name, answer) {
  const text = JSON.stringify(answer);
  memory.set(name, text);
  storage((kept) => kept.setItem(PREFIX + name, text));
}

/** Hear of answers that another tab has changed. */
export function listen(hear) {
  addEventListener("storage", (event) => {
    if (event.key?.startsWith(PREFIX)) hear(event.key.slice(PREFIX.length));
  });
}
