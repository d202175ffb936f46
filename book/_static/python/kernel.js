/* The page's Python: it is loaded when it is first needed, and runs in a worker of its own. */

const HERE = new URL(".", import.meta.url);
const STORE = "optdl-python";
// A module with an empty try_table: valid where WebAssembly has exceptions as Python needs them.
const EXCEPTIONS = new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 10, 8, 1, 6, 0, 31, 64, 0, 11, 11,
]);

/** Say why Python cannot run here; nothing if it can. */
export function obstacle() {
  const able =
    typeof WebAssembly === "object" && typeof DecompressionStream === "function" && WebAssembly.validate(EXCEPTIONS);
  return able
    ? ""
    : "This browser cannot run Python in a page. Chrome and Edge can from version 137, Firefox from 131 and Safari from 18.4 on.";
}

export const isMemory = (error) => /memory|alloc/i.test(error.message);

/** Python stopped, or ended, while a cell was running. */
export class Ended extends Error {}

const LOST = "A part of Python could not be loaded. Connect to the network, and run the cell again.";
const STALLED = "The site has sent nothing for a minute. Check the network, and run the cell again.";
const PATIENCE = 60_000;

/** A part does not come; the message says what to do. */
class Missing extends Error {}

/** Ask the site for something, and say what to do where it does not come, or is not what it should be. */
async function ask(act) {
  const waiting = new AbortController();
  let timer;
  const wait = () => {
    clearTimeout(timer);
    timer = setTimeout(() => waiting.abort(), PATIENCE);
  };
  try {
    wait();
    return await act(waiting.signal, wait);
  } catch (error) {
    if (error instanceof Missing || isMemory(error)) throw error;
    throw new Missing(waiting.signal.aborted ? STALLED : LOST);
  } finally {
    clearTimeout(timer);
  }
}

/** Read the list of the parts of Python, with their sizes. */
const listParts = () =>
  ask(async (signal) => {
    const answer = await fetch(new URL("parts.json", HERE), { cache: "no-cache", signal });
    if (!answer.ok) throw new Missing(`Python is not part of this site (${answer.status}).`);
    return answer.json();
  });

/** Open the browser's store of parts; a page without https has none. */
async function openStore() {
  try {
    return await caches.open(STORE);
  } catch {
    return undefined;
  }
}

/** Return the parts that every cell needs; those for figures are loaded when a cell draws. */
export function core(parts) {
  const { plots, ...rest } = parts;
  return rest;
}

export const weight = (parts) => Object.values(parts).reduce((sum, part) => sum + part.bytes, 0);

/** Tell whether all parts are in the browser's store already. */
export async function isKept(parts) {
  const store = await openStore();
  if (!store) return false;
  const found = await Promise.all(Object.values(parts).map((part) => store.match(new URL(part.file, HERE))));
  return found.every(Boolean);
}

/** Unpack bytes; some servers call them encoded, and then the browser has unpacked them before. */
async function unpacked(bytes) {
  const [beginning, all] = bytes.tee();
  const reader = beginning.getReader();
  const { value } = await reader.read();
  reader.cancel();
  return value?.[0] === 0x1f && value[1] === 0x8b ? all.pipeThrough(new DecompressionStream("gzip")) : all;
}

/** Fetch a part from the store or the site, and return what `read` makes of it. */
function fetchPart(part, store, count, read) {
  const address = new URL(part.file, HERE);
  return ask(async (signal, wait) => {
    let answer = await store?.match(address);
    if (!answer) {
      answer = await fetch(address, { signal });
      if (!answer.ok) throw new Missing(`A part of Python could not be loaded (${answer.status}). The site may have changed: load the page again.`);
      store?.put(address, answer.clone()).catch(() => {});
    }
    const counting = new TransformStream({
      transform(piece, controller) {
        wait();
        count(piece.length);
        controller.enqueue(piece);
      },
    });
    const bytes = await unpacked(answer.body.pipeThrough(counting));
    return read(new Response(bytes, { headers: { "Content-Type": part.type } }));
  }).catch((error) => {
    if (error instanceof Missing) store?.delete(address); // what came may be another page's
    throw error;
  });
}

/** Drop what an older build of the site has left in the store. */
async function tidy(store, parts) {
  const wanted = new Set(Object.values(parts).map((part) => new URL(part.file, HERE).href));
  for (const request of (await store?.keys()) ?? []) if (!wanted.has(request.url)) await store.delete(request);
}

export class Kernel {
  /** Return the parts that would be loaded. */
  async list() {
    this.parts ??= await listParts();
    return this.parts;
  }

  /** Load Python once; `progress` hears how many of how many bytes have come. */
  load(progress) {
    this.loaded ??= this.loadParts(progress).catch((error) => {
      this.loaded = undefined;
      throw error;
    });
    return this.loaded;
  }

  async loadParts(progress) {
    const parts = await this.list();
    const store = await openStore();
    const total = weight(core(parts));
    let [come, failed] = [0, false];
    const count = (bytes) => failed || progress((come += bytes), total);
    const [module, library, course] = await Promise.all([
      fetchPart(parts.python, store, count, (answer) => WebAssembly.compileStreaming(answer)),
      fetchPart(parts.library, store, count, (answer) => answer.arrayBuffer()),
      fetchPart(parts.course, store, count, (answer) => answer.json()),
    ]).catch((error) => {
      failed = true; // the other parts still come, and say nothing more
      throw error;
    });
    tidy(store, parts);
    const files = Object.entries(course).map(([path, text]) => [`/course/${path}`, text]);
    return { module, files: [["/usr/local/lib/python315.zip", new Uint8Array(library)], ...files] };
  }

  /** Start a session, in which names live until it is stopped. */
  start(progress) {
    this.started ??= this.begin(progress).catch((error) => {
      this.started = undefined;
      throw error;
    });
    return this.started;
  }

  async begin(progress) {
    const { module, files } = await this.load(progress);
    this.worker = new Worker(new URL("worker.js", HERE), { type: "module" });
    const begun = await this.ask({ type: "start", module, files, begin: { modules: ["optdl.checks"] } });
    if (begun.type !== "failed") return;
    this.stop();
    throw new Error(`Python did not start: ${begun.reason}`);
  }

  /** Load what figures need, once, and hand it to the session. */
  async extend(progress) {
    if (this.extended === this.worker) return;
    const { plots } = await this.list();
    this.archive ??= this.loadArchive(plots, progress).catch((error) => {
      this.archive = undefined;
      throw error;
    });
    const stopped = new Promise((resolve, reject) => (this.reject = reject));
    const archive = await Promise.race([this.archive, stopped]);
    const { answer } = await this.ask({ type: "extend", archive });
    if (answer.status === "ok") return (this.extended = this.worker);
    this.stop();
    throw new Error(`The part for figures did not start: ${answer.reason ?? answer.text}`);
  }

  async loadArchive(part, progress) {
    let come = 0;
    const count = (bytes) => progress((come += bytes), part.bytes);
    return new Uint8Array(await fetchPart(part, await openStore(), count, (answer) => answer.arrayBuffer()));
  }

  /** Send the worker a message and wait for its answer; output goes to `print`. */
  ask(message, print = () => {}) {
    return new Promise((resolve, reject) => {
      if (!this.worker) return reject(new Ended("stopped"));
      this.reject = reject;
      this.worker.onmessage = ({ data }) => (data.type === "output" ? print(data.text) : resolve(data));
      this.worker.onerror = (event) => {
        event.preventDefault();
        reject(new Error(event.message || "Python could not be started. Connect to the network, and run the cell again."));
        this.stop();
      };
      this.worker.postMessage(message);
    });
  }

  /** Run cells, pairs of a name and its source, up to the first error. */
  async run(cells, print) {
    const { answer } = await this.ask({ type: "run", request: { action: "run", cells } }, print);
    if (answer.status === "ended") this.stop();
    return answer;
  }

  /** End the session at once. */
  stop() {
    this.worker?.terminate();
    this.worker = this.started = undefined;
    this.reject?.(new Ended("stopped"));
  }
}
