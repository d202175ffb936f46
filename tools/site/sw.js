/* Keeps what a reader has visited, so that it opens without a network. The build writes this file to the root of the site.

   A file is kept under its address and the hash of its content, which the list of each version of the site tells. Each
   page belongs to the version with which it was opened, and gets files of that version only, also when the site has
   changed meanwhile: whoever writes an answer is not disturbed. The next page that is opened is of the new version, and
   comes from the network as long as a page of the old one is open; then the worker of the new version takes over. It
   never takes over earlier, since a page that is opened at that moment can be lost. */
"use strict";

const VERSION = "";
const ROOT = new URL("./", location).href;
const LIST = "_static/offline.json";
const STORE = `optdl-site ${ROOT}`;
/** The store of kernel.js, which keeps Python itself; nothing is kept twice. */
const PYTHON = "optdl-python";
/** The version of a page that has come past this worker: all that it asks for comes from the network. */
const NONE = "none";
/** Milliseconds after which a network that says nothing counts as none. */
const PATIENCE = 1500;

const LOST = `<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Not kept on this device</title>
<style>
  :root { --page: #fff; --text: #222832; --link: #14568f; color-scheme: light; }
  @media (prefers-color-scheme: dark) { :root { --page: #121212; --text: #ced6dd; --link: #8cc4ff; color-scheme: dark; } }
  body { background: var(--page); color: var(--text); font: 1.1rem/1.6 system-ui, sans-serif; margin: 12vh auto; max-width: 34rem; }
  main { padding: 0 1.25rem; }
  a { color: var(--link); }
</style>
<main><h1>This page is not kept on this device</h1>
<p>There is no network at the moment, and you have not visited this page before. Pages that you have visited can be read:
go back, or to <a href="${ROOT}">the beginning of the course</a>.</p></main></html>`;

const lists = new Map();
const versions = new Map();
let full = false;

const store = () => caches.open(STORE);
const keyOfList = (version) => `${ROOT}${LIST}?${version}`;
const keyOfClient = (id) => `${ROOT}?client=${id}`;
const WHOLE = `${ROOT}?whole`;

async function digest(body) {
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", body));
  return [...bytes.subarray(0, 8)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Return the files of a version: by their paths, their sizes and hashes. */
async function filesOf(version) {
  if (!lists.has(version)) {
    const kept = await (await store()).match(keyOfList(version));
    if (!kept) return {};
    lists.set(version, (await kept.json()).files);
  }
  return lists.get(version);
}

/** Return the version to which a page, or a worker of a page, belongs. */
async function versionOf(id) {
  if (!versions.has(id)) {
    const kept = await (await store()).match(keyOfClient(id));
    versions.set(id, kept ? await kept.text() : VERSION);
  }
  return versions.get(id);
}

/** Let a page belong to a version, also when this worker has been stopped and started again. */
async function bind(id, version) {
  versions.set(id, version);
  await (await store()).put(keyOfClient(id), new Response(version)).catch(() => {});
}

const kept = async (path, hash) => (await store()).match(`${ROOT}${path}?${hash}`);

/** Return a file of a version, kept or from the network; nothing where the network has another content. */
async function get(path, hash) {
  const there = await kept(path, hash);
  if (there) return there;
  const answer = await fetch(ROOT + path, { cache: "no-cache" });
  const body = await answer.arrayBuffer();
  if (!answer.ok || (await digest(body)) !== hash) return undefined;
  const copy = () => new Response(body, { headers: { "Content-Type": answer.headers.get("Content-Type") ?? "" } });
  // without room nothing is kept, and all works
  await (await store()).put(`${ROOT}${path}?${hash}`, copy()).catch(() => (full = true));
  return copy();
}

/** Tell whether the server has another version, or another site altogether. */
async function isOther() {
  try {
    const address = `${ROOT}_static/version.txt`;
    const answer = await fetch(address, { cache: "no-cache", signal: AbortSignal.timeout(PATIENCE) });
    return answer.status < 500 && (await answer.text()).trim() !== VERSION;
  } catch {
    return false;
  }
}

/** Open a page: as it is kept where the server has no other version, or else from the network. */
async function open(event, path) {
  const id = event.resultingClientId;
  const files = await filesOf(VERSION);
  if (path in files) {
    const [other, page] = await Promise.all([isOther(), get(path, files[path][1]).catch(() => undefined)]);
    if (page && !other) {
      event.waitUntil(bind(id, VERSION));
      return page;
    }
  }
  try {
    const answer = await fetch(event.request, { cache: "no-cache" });
    event.waitUntil(bind(id, NONE));
    registration.update().catch(() => {});
    return answer;
  } catch {
    for (const version of [VERSION, ...(await keptVersions())]) {
      const file = (await filesOf(version))[path];
      const page = file && (await kept(path, file[1]));
      if (!page) continue;
      event.waitUntil(bind(id, version));
      return page;
    }
    return new Response(LOST, { status: 503, headers: { "Content-Type": "text/html" } });
  }
}

/** Hand a page a file of its own version. */
async function serve(event, path) {
  const version = await versionOf(event.clientId);
  if (event.resultingClientId) event.waitUntil(bind(event.resultingClientId, version)); // a worker of the page
  if (version === NONE) return fetch(event.request, { cache: "no-cache" });
  const file = (await filesOf(version))[path];
  if (!file) return fetch(event.request);
  const found = await get(path, file[1]);
  if (found) return found;
  // The site has just been replaced. A picture of the new version does no harm; a script might.
  return ["image", "font"].includes(event.request.destination) ? fetch(event.request) : Response.error();
}

/** Return the path of an address in the list of files; a folder is its first page. */
const pathOf = (address) => address.slice(ROOT.length).replace(/[?#].*/, "").replace(/(^|\/)$/, "$1index.html");

addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  const path = pathOf(url);
  if (method !== "GET" || !url.startsWith(ROOT) || path.endsWith(".gz")) return;
  event.respondWith(event.request.mode === "navigate" ? open(event, path) : serve(event, path));
});

addEventListener("install", (event) => {
  async function install() {
    const answer = await fetch(ROOT + LIST, { cache: "no-cache" });
    const list = await answer.text();
    const { version, core, files } = JSON.parse(list);
    if (version !== VERSION) throw new Error("the site is being replaced at this moment");
    // a server that changes the scripts on their way gets no worker: nothing could be told from another version
    for (const path of core) if (!(await get(path, files[path][1]))) throw new Error(`${path} is of another version`);
    await (await store()).put(keyOfList(VERSION), new Response(list));
  }
  event.waitUntil(install());
});

addEventListener("activate", (event) => event.waitUntil(clients.claim()));

/** Return the versions of which a list is kept. */
async function keptVersions() {
  const head = keyOfList("");
  const keys = await (await store()).keys();
  return keys.filter(({ url }) => url.startsWith(head)).map(({ url }) => url.slice(head.length));
}

/** Keep a file, and with a page all that it shows; tell whether that was possible. */
async function keep(path, files) {
  if (path.endsWith(".gz")) {
    const parts = await caches.open(PYTHON);
    if (await parts.match(ROOT + path)) return true;
    const answer = await fetch(ROOT + path);
    if (!answer.ok) return false;
    await parts.put(ROOT + path, answer).catch(() => (full = true));
    return !full;
  }
  const file = await get(path, files[path][1]);
  if (!file || full) return false;
  if (!path.endsWith(".html")) return true;
  const shown = new Set();
  for (const [, address] of (await file.text()).matchAll(/\b(?:src|href)="([^"#?]+)/g)) {
    const name = new URL(address, ROOT + path).href.slice(ROOT.length);
    if (name in files && !/\.(html|ipynb|gz)$/.test(name)) shown.add(name);
  }
  // what an exercise asks for when it is opened
  if (shown.has("_static/python/start.js"))
    for (const name of Object.keys(files)) if (/^_static\/python\/[^/]+\.(js|json)$/.test(name)) shown.add(name);
  return keepAll([...shown], files);
}

/** Keep files, a few at a time. */
async function keepAll(paths, files) {
  const rest = [...paths];
  let all = true;
  async function next() {
    for (let path; !full && (path = rest.pop()); ) if (!(await keep(path, files).catch(() => false))) all = false;
  }
  await Promise.all([next(), next(), next(), next()]);
  return all && !full;
}

/** Return what is kept of this version and what is not: paths with their sizes. */
async function take() {
  const files = await filesOf(VERSION);
  const keys = new Set((await (await store()).keys()).map(({ url }) => url));
  const python = new Set((await (await caches.open(PYTHON)).keys()).map(({ url }) => url));
  const missing = Object.entries(files)
    .filter(([path, [, hash]]) => !keys.has(`${ROOT}${path}?${hash}`) && !python.has(ROOT + path))
    .map(([path, [bytes]]) => [path, bytes]);
  const total = Object.values(files).reduce((sum, [bytes]) => sum + bytes, 0);
  if (!missing.length) await (await store()).put(WHOLE, new Response()).catch(() => {});
  return { total, missing };
}

let renewing = Promise.resolve();
/** Bring what is kept to this version; then drop what no open page needs. */
async function renew() {
  if (registration.waiting) return; // a newer version is kept already, and sees to this when it takes over
  const cache = await store();
  const keys = (await cache.keys()).map(({ url }) => url);
  const open = await clients.matchAll({ includeUncontrolled: true, type: "all" });
  const ids = new Set([...open.map(({ id }) => id), ...versions.keys()]);
  for (const key of keys) if (key.startsWith(keyOfClient("")) && !ids.has(key.slice(keyOfClient("").length))) await cache.delete(key);
  if ((await keptVersions()).every((version) => version === VERSION)) return;
  const files = await filesOf(VERSION);
  const visited = keys.filter((key) => !key.startsWith(`${ROOT}?`)).map(pathOf);
  const wanted = keys.includes(WHOLE) ? Object.keys(files) : visited.filter((path) => path in files);
  if (!(await keepAll(new Set(wanted), files))) return; // without a network or room, the old version stays
  const needed = new Set([VERSION]);
  for (const { id } of open) needed.add(await versionOf(id));
  const used = new Set([WHOLE]);
  for (const version of needed) {
    used.add(keyOfList(version));
    for (const [path, [, hash]] of Object.entries(await filesOf(version))) used.add(`${ROOT}${path}?${hash}`);
  }
  for (const key of keys) if (!used.has(key) && !key.startsWith(keyOfClient(""))) await cache.delete(key);
}

/** Forget all but what the pages share, which is needed for any of them. */
async function forget() {
  const cache = await store();
  const { core, files } = await (await cache.match(keyOfList(VERSION))).json();
  const shared = new Set(core.map((path) => `${ROOT}${path}?${files[path][1]}`));
  for (const { url } of await cache.keys())
    if (!shared.has(url) && !url.startsWith(keyOfList("")) && !url.startsWith(keyOfClient(""))) await cache.delete(url);
  await caches.delete(PYTHON);
}

addEventListener("message", (event) => {
  const { visited, wanted, forgotten } = event.data;
  async function answer() {
    const files = await filesOf(VERSION);
    full = false;
    if (visited && (await versionOf(event.source.id)) !== NONE) {
      const paths = visited.map(pathOf).filter((path) => path in files && !path.endsWith(".gz"));
      await keepAll(paths, files);
      await (renewing = renewing.then(renew, renew));
    }
    if (forgotten) await forget();
    const all = await keepAll(wanted ?? [], files);
    return { all, full, ...(visited ? {} : await take()) };
  }
  event.waitUntil(answer().then((found) => event.ports[0]?.postMessage(found)));
});
