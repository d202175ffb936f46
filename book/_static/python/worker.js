/* Runs Python, away from the page: an endless loop here leaves the page alive. */

import { Exit, Files, Wasi } from "./wasi.js";

const LONGEST_OUTPUT = 200_000;
const BUNDLE = 100;
const ENVIRONMENT = { HOME: "/tmp", TMPDIR: "/tmp", PYTHONDONTWRITEBYTECODE: "1", MPLBACKEND: "module://page_figures" };

let python;

/** Text that Python prints, sent in bundles; the page would stall on a message for each line. */
class Output {
  constructor(send) {
    this.send = send;
    this.begin();
  }

  begin() {
    this.decoder = new TextDecoder();
    this.text = "";
    this.length = 0;
    this.last = performance.now();
  }

  add(bytes) {
    this.length += bytes.length;
    if (this.length > LONGEST_OUTPUT) return;
    this.text += this.decoder.decode(bytes, { stream: true });
    if (performance.now() - this.last > BUNDLE) this.flush();
  }

  flush() {
    if (this.text) this.send(this.text);
    this.text = "";
    this.last = performance.now();
  }

  end() {
    if (this.length > LONGEST_OUTPUT) this.text += `\n… ${this.length.toLocaleString("en")} characters were printed; the rest is not shown.\n`;
    this.flush();
  }
}

class Python {
  constructor(module, files) {
    this.files = new Files();
    for (const [path, data] of files) this.files.write(path, data);
    this.files.write("/tmp/.keep", "");
    this.output = new Output((text) => postMessage({ type: "output", text }));
    this.wasi = new Wasi({
      files: this.files,
      env: ENVIRONMENT,
      output: (bytes) => this.output.add(bytes),
    });
    this.instance = new WebAssembly.Instance(module, this.wasi.imports(module));
    this.wasi.memory = this.instance.exports.memory;
  }

  /** Run source in the session that keeps its names; 0 means that it ended without an error. */
  turn(source) {
    const { host_alloc: allocate, turn } = this.instance.exports;
    const code = new TextEncoder().encode(source);
    const at = allocate(code.length) >>> 0;
    new Uint8Array(this.wasi.memory.buffer, at, code.length).set(code);
    return turn(at, code.length);
  }

  run(request) {
    this.files.write("/request.json", JSON.stringify(request));
    this.files.write("/answer.json", "");
    this.output.begin();
    let answer;
    try {
      const status = this.turn("import session; session.main()");
      const text = new TextDecoder().decode(this.files.read("/answer.json"));
      answer = text ? JSON.parse(text) : { status: "ended", reason: `status ${status}` };
    } catch (error) {
      answer = { status: "ended", reason: reason(error) };
    }
    this.output.end();
    return answer;
  }
}

function reason(error) {
  if (error instanceof Exit) return "exit";
  if (error instanceof RangeError) return "recursion";
  return error instanceof WebAssembly.RuntimeError && /memory|allocation/i.test(error.message) ? "memory" : String(error);
}

onmessage = ({ data }) => {
  if (data.type === "start") {
    try {
      python = new Python(data.module, data.files);
      python.turn("import sys; sys.path_importer_cache.clear()\nimport zipimport; zipimport._zip_directory_cache.clear()\nsys.path.insert(0, '/course')");
      postMessage({ type: "ready", answer: python.run({ action: "begin", ...data.begin }) });
    } catch (error) {
      postMessage({ type: "failed", reason: String(error) });
    }
  } else if (data.type === "extend") {
    python.files.write("/plots.zip", data.archive);
    postMessage({ type: "done", answer: python.run({ action: "extend", archive: "/plots.zip", folder: "/plots" }) });
  } else if (data.type === "files") {
    for (const [path, content] of data.files) python.files.write(path, content);
    postMessage({ type: "done" });
  } else {
    postMessage({ type: "done", answer: python.run(data.request) });
  }
};
