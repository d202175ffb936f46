/* Keeps the whole course on the device, a few files at a time, and removes it again. */
(() => {
  "use strict";

  const box = document.getElementById("keep-course");
  const [said, bar, keeper, remover] = box.querySelectorAll("p, progress, button");
  const address = new URL("../sw.js", document.currentScript.src);
  const megabytes = (bytes) => `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;
  let registration, state, stopped;

  const say = (text) => (said.textContent = text);

  function ask(message) {
    const { port1, port2 } = new MessageChannel();
    return new Promise((resolve) => {
      port1.onmessage = ({ data }) => resolve(data);
      registration.active.postMessage(message, [port2]);
    });
  }

  /** Show how much is kept, and what can be done. */
  function show(text) {
    const left = state.missing.reduce((sum, [, bytes]) => sum + bytes, 0);
    const whole = left === 0;
    say(text ?? (whole ? `The whole course is kept on this device (${megabytes(state.total)}).` :
      `${megabytes(state.total - left)} of ${megabytes(state.total)} are kept on this device.`));
    keeper.textContent = `Keep the whole course on this device (${megabytes(left)})`;
    remover.textContent = `Remove what is kept (${megabytes(state.total - left)})`;
    keeper.hidden = whole;
    remover.hidden = left === state.total;
    bar.hidden = true;
  }

  async function keepAll() {
    if (stopped === false) return (stopped = true);
    stopped = false;
    const { missing } = state;
    const total = missing.reduce((sum, [, bytes]) => sum + bytes, 0);
    const { quota = Infinity, usage = 0 } = (await navigator.storage?.estimate?.()) ?? {};
    navigator.storage?.persist?.().catch(() => {});
    let come = 0, answer = { all: true }, why;
    if (quota - usage < total) why = `There is no room: this browser has ${megabytes(quota - usage)} for this site, and ${megabytes(total)} are needed.`;
    keeper.textContent = "Stop";
    remover.hidden = true;
    bar.hidden = false;
    for (let begin = 0; begin < missing.length && !why && !stopped; begin += 12) {
      const batch = missing.slice(begin, begin + 12);
      say(`${megabytes(come)} of ${megabytes(total)} have been loaded.`);
      bar.value = come / total;
      answer = await ask({ wanted: batch.map(([path]) => path) });
      come += batch.reduce((sum, [, bytes]) => sum + bytes, 0);
      if (answer.full) why = "There is no more room on this device. What has been loaded can be read.";
      else if (!answer.all) why = "Not all could be loaded. If you are connected, the course may have changed: close all its pages, open this one again, and press once more to go on.";
    }
    stopped = undefined;
    state = await ask({});
    show(why);
    (keeper.hidden ? remover : keeper).focus();
  }

  async function remove() {
    state = await ask({ forgotten: true });
    show("Nothing is kept any more but what all pages share. Your answers are still there.");
    keeper.focus();
  }

  /** Wait until the worker can be asked; it is not there on the first visit. */
  async function begin() {
    registration = await navigator.serviceWorker.register(address);
    const coming = registration.active ?? registration.waiting ?? registration.installing;
    if (coming.state !== "activated")
      await new Promise((resolve, reject) =>
        coming.addEventListener("statechange", () => (coming.state === "activated" ? resolve() : coming.state === "redundant" && reject(new Error()))));
    state = await ask({});
    show();
    keeper.addEventListener("click", keepAll);
    remover.addEventListener("click", remove);
  }

  if (location.protocol === "file:") say("You have opened this page from a file: the course is on your device already.");
  else if (!window.isSecureContext) say("A browser keeps pages only of an address that begins with https://, and this one does not.");
  else begin().catch(() => say("This browser keeps nothing of this site: its storage is blocked or full, or the window is private."));
})();
