/* What cannot be known while the site is built: which blocks are too wide for this window.
   A reader without a mouse must be able to focus them in order to scroll. */
(function () {
  "use strict";

  const BLOCKS = ".bd-article pre, .bd-article span.math, .bd-article div.math mjx-container, .pst-scrollable-table-container";

  function focusable() {
    for (const block of document.querySelectorAll(BLOCKS)) {
      const wide = block.scrollWidth > block.clientWidth + 1 && getComputedStyle(block).overflowX !== "visible";
      if (wide) block.tabIndex = 0;
      else block.removeAttribute("tabindex");
    }
  }

  let waiting;
  function soon() {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(focusable);
  }

  // Paper is white: while the page is printed, it has the light colors.
  const root = document.documentElement;
  let dark = false;
  function toPaper() {
    dark = dark || root.dataset.theme === "dark";
    root.dataset.theme = "light";
  }
  function toScreen() {
    if (dark) root.dataset.theme = "dark";
    dark = false;
  }
  const paper = matchMedia("print");
  paper.addEventListener("change", (event) => (event.matches ? toPaper() : toScreen()));
  addEventListener("beforeprint", toPaper);
  addEventListener("afterprint", toScreen);
  if (paper.matches) toPaper();

  // A page from the disk may not fetch a file beside it, and a notebook would open as plain text:
  // there the notebook comes with a script, and is saved from it.
  window.saveNotebook = (name, text) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/x-ipynb+json" }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest('a[href$=".ipynb"]');
    if (!link || location.protocol !== "file:" || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const script = document.createElement("script");
    script.src = `${link.href}.js`;
    script.onload = () => script.remove();
    document.head.append(script);
  });

  focusable();
  addEventListener("load", () => {
    soon();
    if (window.MathJax && MathJax.startup && MathJax.startup.promise) MathJax.startup.promise.then(soon);
  });
  addEventListener("resize", soon);
  document.addEventListener("toggle", soon, true);
})();
