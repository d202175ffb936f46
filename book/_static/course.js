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

  focusable();
  addEventListener("load", () => {
    soon();
    if (window.MathJax && MathJax.startup && MathJax.startup.promise) MathJax.startup.promise.then(soon);
  });
  addEventListener("resize", soon);
  document.addEventListener("toggle", soon, true);
})();
