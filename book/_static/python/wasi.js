/* The system calls of WASI preview 1, on files in memory.
 *
 * A Python that is compiled to WebAssembly asks its host for files, the time and random numbers.
 * Here the host is a web worker: files are arrays, standard output goes to a function, and
 * there is no network and no process.
 */

const SUCCESS = 0, DENIED = 2, BADF = 8, EXIST = 20, INVAL = 28, ISDIR = 31, NOENT = 44, NOSPC = 51,
  NOSYS = 52, NOTDIR = 54, NOTEMPTY = 55, SPIPE = 70;
const CHARACTERS = 2, FOLDER = 3, FILE = 4;
const ALL_RIGHTS = 0xffffffffffffffffn;
const CREATE = 1, DIRECTORY = 2, EXCLUSIVE = 4, TRUNCATE = 8, APPEND = 1;

/** The program has called exit. */
export class Exit extends Error {
  constructor(code) {
    super(`Python ended with exit code ${code}`);
    this.code = code;
  }
}

class Folder {
  constructor() {
    this.type = FOLDER;
    this.entries = new Map();
  }

  get size() {
    return 0;
  }
}

class File {
  constructor(data = new Uint8Array(0)) {
    this.type = FILE;
    this.data = data;
    this.size = data.length;
  }

  resize(size) {
    if (size > this.data.length) {
      const data = new Uint8Array(Math.max(size, 2 * this.data.length));
      data.set(this.data.subarray(0, this.size));
      this.data = data;
    }
    this.data.fill(0, Math.min(size, this.size), this.size);
    this.size = size;
  }

  bytes() {
    return this.data.subarray(0, this.size);
  }
}

/** Files in memory, by absolute path. */
export class Files {
  constructor(capacity = 256 * 2 ** 20) {
    this.root = new Folder();
    this.capacity = capacity;
  }

  /** Write a file and the folders above it. */
  write(path, data) {
    const parts = path.split("/").filter(Boolean);
    const name = parts.pop();
    let folder = this.root;
    for (const part of parts) {
      if (!folder.entries.has(part)) folder.entries.set(part, new Folder());
      folder = folder.entries.get(part);
    }
    folder.entries.set(name, new File(typeof data === "string" ? new TextEncoder().encode(data) : data));
  }

  /** Return the bytes of a file, or nothing. */
  read(path) {
    const found = this.find(path);
    return found instanceof File ? found.bytes() : undefined;
  }

  find(path) {
    const [folder, name] = this.parent(path);
    return name === "" ? folder : folder?.entries.get(name);
  }

  /** Return the folder that holds a path's last name, and this name. */
  parent(path) {
    const parts = [];
    for (const part of path.split("/")) {
      if (part === "..") parts.pop();
      else if (part !== "" && part !== ".") parts.push(part);
    }
    const name = parts.pop() ?? "";
    let folder = this.root;
    for (const part of parts) {
      folder = folder.entries.get(part);
      if (!(folder instanceof Folder)) return [undefined, name];
    }
    return [folder, name];
  }
}

/** The imports of a module that is compiled for WASI. */
export class Wasi {
  constructor({ files, args = ["python"], env = {}, output = () => {} }) {
    this.files = files;
    this.args = args;
    this.env = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    this.output = output;
    this.opened = new Map([0, 1, 2].map((number) => [number, { type: CHARACTERS, number }]));
    this.opened.set(3, { type: FOLDER, node: files.root, path: "/", preopened: true });
    this.next = 4;
    this.written = 0;
  }

  /** Return the import object; a call that is not here answers that it does not exist. */
  imports(module) {
    const known = { wasi_snapshot_preview1: this.calls(), host: { call: () => -1 } };
    const imports = {};
    for (const { module: from, name } of WebAssembly.Module.imports(module)) {
      imports[from] ??= {};
      imports[from][name] = known[from]?.[name] ?? (() => NOSYS);
    }
    return imports;
  }

  get view() {
    if (this.kept?.buffer !== this.memory.buffer) this.kept = new DataView(this.memory.buffer);
    return this.kept;
  }

  bytes(at, length) {
    return new Uint8Array(this.memory.buffer, at, length);
  }

  text(at, length) {
    return new TextDecoder().decode(this.bytes(at, length).slice());
  }

  path(descriptor, at, length) {
    const base = this.opened.get(descriptor);
    const text = this.text(at, length);
    return text.startsWith("/") ? text : `${base?.path ?? "/"}/${text}`;
  }

  stat(at, node) {
    const { view } = this;
    for (let word = 0; word < 8; word++) view.setBigUint64(at + 8 * word, 0n, true);
    this.numbers ??= new WeakMap();
    if (!this.numbers.has(node)) this.numbers.set(node, BigInt((this.nodes = (this.nodes ?? 0) + 1)));
    view.setBigUint64(at + 8, this.numbers.get(node), true);
    view.setUint8(at + 16, node.type);
    view.setBigUint64(at + 24, 1n, true);
    view.setBigUint64(at + 32, BigInt(node.size ?? 0), true);
    return SUCCESS;
  }

  strings(list, pointers, at) {
    for (const text of list) {
      const bytes = new TextEncoder().encode(`${text}\0`);
      this.view.setUint32(pointers, at, true);
      this.bytes(at, bytes.length).set(bytes);
      pointers += 4;
      at += bytes.length;
    }
    return SUCCESS;
  }

  sizes(list, count, length) {
    this.view.setUint32(count, list.length, true);
    const bytes = list.reduce((sum, text) => sum + new TextEncoder().encode(text).length + 1, 0);
    this.view.setUint32(length, bytes, true);
    return SUCCESS;
  }

  /** Go through the pieces of memory that a read or a write names. */
  *pieces(at, count) {
    for (let index = 0; index < count; index++) {
      yield [this.view.getUint32(at + 8 * index, true), this.view.getUint32(at + 8 * index + 4, true)];
    }
  }

  readInto(file, position, at, count, done) {
    let read = 0;
    for (const [start, length] of this.pieces(at, count)) {
      const part = file.node.bytes().subarray(position + read, position + read + length);
      this.bytes(start, part.length).set(part);
      read += part.length;
      if (part.length < length) break;
    }
    this.view.setUint32(done, read, true);
    return read;
  }

  writeFrom(file, position, at, count, done) {
    let length = 0;
    for (const [, size] of this.pieces(at, count)) length += size;
    const end = position + length;
    if (end > file.node.size) {
      this.written += end - file.node.size;
      if (this.written > this.files.capacity) return -1;
      file.node.resize(end);
    }
    for (const [start, size] of this.pieces(at, count)) {
      file.node.data.set(this.bytes(start, size), position);
      position += size;
    }
    this.view.setUint32(done, length, true);
    return length;
  }

  /** Open a path; answer with an error's number, or write the new descriptor. */
  open(path, flags, append, done) {
    const [folder, name] = this.files.parent(path);
    if (!folder) return NOENT;
    let node = name === "" ? folder : folder.entries.get(name);
    if (node && flags & CREATE && flags & EXCLUSIVE) return EXIST;
    if (!node) {
      if (!(flags & CREATE)) return NOENT;
      node = new File();
      folder.entries.set(name, node);
    }
    if (flags & DIRECTORY && node.type !== FOLDER) return NOTDIR;
    if (flags & TRUNCATE && node.type === FILE) node.resize(0);
    const number = this.next++;
    this.opened.set(number, { type: node.type, node, path, position: 0, append });
    this.view.setUint32(done, number, true);
    return SUCCESS;
  }

  list(descriptor, at, length, cookie, done) {
    const folder = this.opened.get(descriptor)?.node;
    if (!(folder instanceof Folder)) return NOTDIR;
    let used = 0;
    const entries = [...folder.entries];
    for (let index = Number(cookie); index < entries.length && used < length; index++) {
      const name = new TextEncoder().encode(entries[index][0]);
      const entry = new Uint8Array(24 + name.length);
      const view = new DataView(entry.buffer);
      view.setBigUint64(0, BigInt(index + 1), true);
      view.setUint32(16, name.length, true);
      view.setUint8(20, entries[index][1].type);
      entry.set(name, 24);
      const part = entry.subarray(0, length - used);
      this.bytes(at + used, part.length).set(part);
      used += part.length;
    }
    this.view.setUint32(done, used, true);
    return SUCCESS;
  }

  remove(path, type) {
    const [folder, name] = this.files.parent(path);
    const node = folder?.entries.get(name);
    if (!node) return NOENT;
    if (node.type !== type) return type === FOLDER ? NOTDIR : ISDIR;
    if (type === FOLDER && node.entries.size) return NOTEMPTY;
    folder.entries.delete(name);
    return SUCCESS;
  }

  rename(from, to) {
    const [source, name] = this.files.parent(from);
    const [target, other] = this.files.parent(to);
    const node = source?.entries.get(name);
    if (!node || !target) return NOENT;
    source.entries.delete(name);
    target.entries.set(other, node);
    return SUCCESS;
  }

  now(clock) {
    const milliseconds = clock === 0 ? Date.now() : performance.now();
    return BigInt(Math.round(milliseconds * 1e6));
  }

  /** Wait as long as the first clock says; there is nothing else to wait for. */
  poll(subscriptions, events, count, done) {
    const { view } = this;
    for (let index = 0; index < count; index++) {
      const at = subscriptions + 48 * index;
      if (view.getUint8(at + 8) !== 0) continue;
      const clock = view.getUint32(at + 16, true);
      const time = view.getBigUint64(at + 24, true);
      const end = view.getUint16(at + 40, true) & 1 ? time : this.now(clock) + time;
      while (this.now(clock) < end);
      for (let word = 0; word < 4; word++) view.setBigUint64(events + 8 * word, 0n, true);
      view.setBigUint64(events, view.getBigUint64(at, true), true);
      view.setUint32(done, 1, true);
      return SUCCESS;
    }
    return NOSYS;
  }

  calls() {
    const file = (number) => this.opened.get(number);
    const seekable = (number, act) => {
      const opened = file(number);
      if (!opened) return BADF;
      if (opened.type === FOLDER) return ISDIR;
      return opened.type === FILE ? act(opened) : SPIPE;
    };
    return {
      args_get: (pointers, at) => this.strings(this.args, pointers, at),
      args_sizes_get: (count, length) => this.sizes(this.args, count, length),
      environ_get: (pointers, at) => this.strings(this.env, pointers, at),
      environ_sizes_get: (count, length) => this.sizes(this.env, count, length),
      clock_res_get: (clock, at) => (this.view.setBigUint64(at, 1000n, true), SUCCESS),
      clock_time_get: (clock, precision, at) => (this.view.setBigUint64(at, this.now(clock), true), SUCCESS),
      random_get: (at, length) => {
        for (let start = 0; start < length; start += 65536) {
          const part = new Uint8Array(Math.min(65536, length - start));
          this.bytes(at + start, part.length).set(crypto.getRandomValues(part));
        }
        return SUCCESS;
      },
      sched_yield: () => SUCCESS,
      proc_exit: (code) => {
        throw new Exit(code);
      },
      poll_oneoff: (from, to, count, done) => this.poll(from, to, count, done),
      fd_advise: () => SUCCESS,
      fd_close: (number) => (this.opened.delete(number) ? SUCCESS : BADF),
      fd_datasync: () => SUCCESS,
      fd_sync: () => SUCCESS,
      fd_fdstat_get: (number, at) => {
        const opened = file(number);
        if (!opened) return BADF;
        this.view.setUint8(at, opened.type);
        this.view.setUint16(at + 2, opened.append ? APPEND : 0, true);
        this.view.setBigUint64(at + 8, ALL_RIGHTS, true);
        this.view.setBigUint64(at + 16, ALL_RIGHTS, true);
        return SUCCESS;
      },
      fd_fdstat_set_flags: () => SUCCESS,
      fd_filestat_get: (number, at) => {
        const opened = file(number);
        return opened ? this.stat(at, opened.node ?? opened) : BADF;
      },
      fd_filestat_set_size: (number, size) => seekable(number, ({ node }) => (node.resize(Number(size)), SUCCESS)),
      fd_filestat_set_times: () => SUCCESS,
      fd_prestat_get: (number, at) => {
        if (!file(number)?.preopened) return BADF;
        this.view.setUint8(at, 0);
        this.view.setUint32(at + 4, 1, true);
        return SUCCESS;
      },
      fd_prestat_dir_name: (number, at) => (this.bytes(at, 1).set([47]), SUCCESS),
      fd_read: (number, at, count, done) => {
        const opened = file(number);
        if (opened?.type === CHARACTERS) return (this.view.setUint32(done, 0, true), SUCCESS);
        return seekable(number, (each) => {
          each.position += this.readInto(each, each.position, at, count, done);
          return SUCCESS;
        });
      },
      fd_pread: (number, at, count, offset, done) =>
        seekable(number, (each) => (this.readInto(each, Number(offset), at, count, done), SUCCESS)),
      fd_write: (number, at, count, done) => {
        const opened = file(number);
        if (opened?.type === CHARACTERS) {
          let length = 0;
          for (const [start, size] of this.pieces(at, count)) {
            this.output(this.bytes(start, size).slice(), number);
            length += size;
          }
          this.view.setUint32(done, length, true);
          return SUCCESS;
        }
        return seekable(number, (each) => {
          const position = each.append ? each.node.size : each.position;
          const length = this.writeFrom(each, position, at, count, done);
          if (length < 0) return NOSPC;
          each.position = position + length;
          return SUCCESS;
        });
      },
      fd_pwrite: (number, at, count, offset, done) =>
        seekable(number, (each) => (this.writeFrom(each, Number(offset), at, count, done) < 0 ? NOSPC : SUCCESS)),
      fd_seek: (number, offset, whence, done) =>
        seekable(number, (each) => {
          const base = [0, each.position, each.node.size][whence];
          const position = base + Number(offset);
          if (!(position >= 0)) return INVAL;
          each.position = position;
          this.view.setBigUint64(done, BigInt(position), true);
          return SUCCESS;
        }),
      fd_tell: (number, done) =>
        seekable(number, (each) => (this.view.setBigUint64(done, BigInt(each.position), true), SUCCESS)),
      fd_readdir: (number, at, length, cookie, done) => this.list(number, at, length, cookie, done),
      path_create_directory: (number, at, length) => {
        const [folder, name] = this.files.parent(this.path(number, at, length));
        if (!folder) return NOENT;
        if (folder.entries.has(name)) return EXIST;
        folder.entries.set(name, new Folder());
        return SUCCESS;
      },
      path_filestat_get: (number, flags, at, length, to) => {
        const node = this.files.find(this.path(number, at, length));
        return node ? this.stat(to, node) : NOENT;
      },
      path_filestat_set_times: () => SUCCESS,
      path_link: () => DENIED,
      path_symlink: () => DENIED,
      path_readlink: () => INVAL,
      path_open: (number, how, at, length, flags, rights, inherited, mode, done) =>
        this.open(this.path(number, at, length), flags, Boolean(mode & APPEND), done),
      path_remove_directory: (number, at, length) => this.remove(this.path(number, at, length), FOLDER),
      path_unlink_file: (number, at, length) => this.remove(this.path(number, at, length), FILE),
      path_rename: (number, at, length, to, other, size) =>
        this.rename(this.path(number, at, length), this.path(to, other, size)),
    };
  }
}
