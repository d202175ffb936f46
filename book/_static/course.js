/* What a page does around its article, and what cannot be known while the site is built. */
(function () {
  "use strict";

  // Which blocks are too wide for this window: a reader without a mouse must be able to focus them in order to scroll.
  const BLOCKS =
    ".bd-article pre, .bd-article .cell_output > .output, .bd-article span.math, " +
    ".bd-article div.math mjx-container, .pst-scrollable-table-container";

  // All is read before anything is written: otherwise the page is laid out anew for each block.
  function focusable(blocks) {
    const wide = blocks.map(
      (block) => block.scrollWidth > block.clientWidth + 1 && getComputedStyle(block).overflowX !== "visible",
    );
    blocks.forEach((block, index) => {
      if (wide[index]) block.tabIndex = 0;
      else if (block.hasAttribute("tabindex")) block.removeAttribute("tabindex");
    });
  }

  // A block is measured when it is laid out, which may be when the reader comes near it, and when
  // its size changes: in another window, unfolded, with the answer of a check.
  const sizes = new ResizeObserver((entries) => focusable(entries.map((entry) => entry.target)));
  const narrow = matchMedia("(max-width: 47.99em)");
  function observe(block) {
    // Until it is measured, a block can be focused: nobody is kept from one that scrolls. In a wide
    // window a formula within a line does not scroll, and has no size that could be measured.
    const scrolls = narrow.matches || !block.matches("span.math");
    if (scrolls && !block.hasAttribute("tabindex")) block.tabIndex = 0;
    sizes.observe(block);
  }
  // a few at a time: a long page has a thousand
  function watch(blocks) {
    for (const block of blocks.splice(0, 100)) observe(block);
    if (blocks.length) setTimeout(watch, 0, blocks);
  }
  watch([...document.querySelectorAll(BLOCKS)]);
  narrow.addEventListener("change", () => watch([...document.querySelectorAll(BLOCKS)]));
  // Whoever goes through the page by keyboard is not stopped at blocks that do not scroll.
  function all(event) {
    if (event.key !== "Tab") return;
    removeEventListener("keydown", all, true);
    focusable([...document.querySelectorAll(BLOCKS)]);
  }
  addEventListener("keydown", all, true);
  const main = document.getElementById("main-content");
  if (main) {
    new MutationObserver((changes) => {
      for (const change of changes) {
        const written = [...change.addedNodes].some((node) => node instanceof HTMLElement); // not drawn
        if (written) (change.target.parentNode || main).querySelectorAll(BLOCKS).forEach(observe);
      }
    }).observe(main, { childList: true, subtree: true });
  }

  // The contents of the page mark the last section that reaches into the upper third of the window.
  const nav = document.querySelector(".bd-toc-nav");
  const links = new Map();
  for (const link of nav ? nav.querySelectorAll("a[href^='#']") : []) {
    const section = document.getElementById(decodeURIComponent(link.hash.slice(1)));
    if (section) links.set(section, link);
  }
  const seen = new Set();
  function mark(entries) {
    for (const entry of entries) seen[entry.isIntersecting ? "add" : "delete"](entry.target);
    const now = [...links.keys()].filter((section) => seen.has(section)).pop();
    for (const [section, link] of links) {
      const active = section === now || (now !== undefined && section.contains(now));
      link.classList.toggle("active", active);
      link.parentElement.classList.toggle("active", active);
      link.ariaCurrent = section === now ? "true" : null;
    }
  }
  if (links.size && window.IntersectionObserver) {
    const spy = new IntersectionObserver(mark, { rootMargin: "0px 0px -66% 0px" });
    for (const section of links.keys()) spy.observe(section);
  }

  // The header has a shadow when something is under it.
  const helper = document.querySelector(".sbt-scroll-pixel-helper");
  if (helper) {
    new IntersectionObserver(([entry]) => {
      document.body.classList.toggle("scrolled", entry.boundingClientRect.y < 0);
    }).observe(helper);
  }

  // Whoever scrolls up is offered the way to the top. A page also scrolls by itself, when a section
  // above takes another room than was reserved for it.
  const top = document.getElementById("pst-back-to-top");
  let [before, moved] = [0, -Infinity];
  if (top) {
    top.addEventListener("click", () => scrollTo({ top: 0 }));
    const passive = { passive: true };
    for (const kind of ["wheel", "touchmove", "keydown"]) addEventListener(kind, () => { moved = performance.now(); }, passive);
    addEventListener("scroll", () => {
      const up = before - scrollY;
      before = scrollY;
      if (up && performance.now() - moved < 1000) top.style.display = up > 0 && scrollY > innerHeight ? "flex" : "none";
    }, passive);
  }

  // In a narrow window the two lists of contents come in from the sides, over the page, and go when the reader does
  // something else; in a wide one the button hides them. The boxes are those of the theme's style sheet.
  for (const side of ["primary", "secondary"]) {
    const box = document.getElementById(`pst-${side}-sidebar-checkbox`);
    const bar = document.querySelector(`.bd-sidebar-${side}`);
    const button = document.querySelector(`.${side}-toggle`);
    if (!bar || !button) continue;
    const covers = () => box.checked && box.nextElementSibling.offsetHeight > 0;
    button.addEventListener("click", () => {
      box.checked = !box.checked;
      // it can be focused when it has begun to move
      if (covers()) setTimeout(() => covers() && bar.querySelector("a, button").focus(), 100);
    });
    box.addEventListener("change", () => box.checked || button.focus());
    addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !covers()) return;
      box.checked = false;
      button.focus();
    });
    bar.addEventListener("click", (event) => {
      if (covers() && event.target.closest("a")) box.checked = false;
    });
    bar.addEventListener("focusout", ({ relatedTarget: next }) => {
      if (covers() && next && next !== button && !bar.contains(next)) box.checked = false;
    });
  }

  // The list of the course stays where the reader left it; before that, it shows where this page is.
  const course = document.querySelector(".bd-sidebar-primary");
  const page = course && [...course.querySelectorAll(".bd-docs-nav .active")].pop();
  try {
    const left = sessionStorage.getItem("contents-scrolled");
    addEventListener("pagehide", () => sessionStorage.setItem("contents-scrolled", course.scrollTop));
    if (left !== null) course.scrollTop = left;
    else if (page) course.scrollTop = page.getBoundingClientRect().y - course.getBoundingClientRect().y - course.clientHeight / 4;
  } catch {
    // storage is blocked
  }

  // The button goes through light, dark and automatic, and begins with what looks different.
  const root = document.documentElement;
  const night = matchMedia("(prefers-color-scheme: dark)");
  function color(mode) {
    root.dataset.mode = mode;
    root.dataset.theme = mode === "auto" ? (night.matches ? "dark" : "light") : mode;
  }
  night.addEventListener("change", () => color(root.dataset.mode));
  document.querySelector(".theme-switch-button")?.addEventListener("click", () => {
    const modes = night.matches ? ["auto", "light", "dark"] : ["auto", "dark", "light"];
    color(modes[(modes.indexOf(root.dataset.mode) + 1) % 3]);
    try {
      localStorage.setItem("mode", root.dataset.mode);
    } catch {
      // storage is blocked: it is so until the page is left
    }
  });

  // Paper is white: while the page is printed, it has the light colors.
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
    const href = URL.createObjectURL(new Blob([text], { type: "application/x-ipynb+json" }));
    const link = Object.assign(document.createElement("a"), { href, download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest('a[href$=".ipynb"]');
    if (!link || location.protocol !== "file:" || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const script = Object.assign(document.createElement("script"), { src: `${link.href}.js` });
    script.onload = () => script.remove();
    document.head.append(script);
  });
})();
