/* Has each page that is visited kept, so that it opens without a network. The worker at the root of the site does it. */
(() => {
  "use strict";

  const address = new URL("../sw.js", document.currentScript.src);
  if (!location.protocol.startsWith("http")) return;
  addEventListener("load", async () => {
    try {
      await navigator.serviceWorker.register(address);
      const { active } = await navigator.serviceWorker.ready;
      const loaded = performance.getEntriesByType("resource").map(({ name }) => name);
      active.postMessage({ visited: [location.href, ...loaded] });
    } catch {
      // The browser keeps nothing, and all works. The page “For students” says so.
    }
  });
})();
