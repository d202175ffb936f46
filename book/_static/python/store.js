/* The reader's answers, kept in this browser. Each has a name, its text, the text that agreed, and texts that did not. */

const PREFIX = "optdl:answer:";
/** What the browser did not take, for as long as the page is open. */
const memory = new Map();

function storage(act) {
  try {
    return act(localStorage);
  } catch {
    return undefined;
  }
}

const able = storage((kept) => (kept.setItem(`${PREFIX}?`, ""), kept.removeItem(`${PREFIX}?`), true));

/** Tell whether the browser keeps an answer, or would. */
export const keeps = (name) => !memory.has(name) && Boolean(able || storage((kept) => kept.getItem(PREFIX + name)));

/** Return what is kept of an answer: its text, the text that passed its check, and some that did not; nothing that is damaged. */
export function load(name) {
  const text = memory.get(name) ?? storage((kept) => kept.getItem(PREFIX + name));
  try {
    const sound = ([part, value]) => (part === "wrong" ? Array.isArray(value) : typeof value === "string");
    return Object.fromEntries(Object.entries(JSON.parse(text)).filter(sound));
  } catch {
    return {};
  }
}

/** Keep more of what is known of an answer. */
export function save(name, more) {
  const text = JSON.stringify({ ...load(name), ...more });
  if (storage((kept) => (kept.setItem(PREFIX + name, text), true))) memory.delete(name);
  else memory.set(name, text);
}

/** Hear of answers that another tab has changed. */
export function listen(hear) {
  addEventListener("storage", (event) => {
    if (!event.key?.startsWith(PREFIX)) return;
    const name = event.key.slice(PREFIX.length);
    memory.delete(name);
    hear(name);
  });
}
