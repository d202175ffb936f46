/* Shows what a reference leads to beside it: a formula, a figure, a source, a term of the glossary.
   It comes after a moment of hovering, with the focus of the keyboard, or at the first tap. */
(() => {
  "use strict";
  const KINDS = ["equation-", "term-", "fig-", "explore-"].map((kind) => `[href*="#${kind}"]`);
  const LINKS = `article :is(a.internal:is(${KINDS}), a.footnote-reference)`;
  const pages = new Map();
  const card = document.createElement("div");
  card.id = "hover-card";
  card.popover = "manual";
  card.setAttribute("role", "tooltip");
  let link, opening, closing; // what is asked for; its card may still be on the way

  const here = (url) => url.pathname === location.pathname;
  const shown = () => card.matches(":popover-open");

  function page(url) {
    const address = url.href.split("#")[0];
    if (!pages.has(address)) {
      const read = fetch(address).then(async (answer) => new DOMParser().parseFromString(await answer.text(), "text/html"));
      read.catch(() => pages.delete(address));
      pages.set(address, read);
    }
    return pages.get(address);
  }

  /** A copy of what an address leads to: no link, no id, and files named as this page sees them. */
  async function find(url) {
    const id = decodeURIComponent(url.hash.slice(1));
    const inDocument = (doc) => doc.getElementById(id);
    let target = here(url) && inDocument(document);
    // a figure to explore has its still picture in the file of the page
    if (!target || target.querySelector(".ex-live")) target = inDocument(await page(url));
    const copy = document.createElement("div");
    if (target.matches("dt")) {
      const term = copy.appendChild(document.createElement("dl"));
      for (const part of [target, target.parentNode.querySelector(`#${CSS.escape(id)} ~ dd`)]) term.append(part.cloneNode(true));
    } else copy.append(target.cloneNode(true));
    for (const part of copy.querySelectorAll("*")) {
      for (const name of ["id", "tabindex", "loading"]) part.removeAttribute(name);
      if (part.matches("img")) part.src = new URL(part.getAttribute("src"), url);
      if (part.matches(".headerlink, .label, script, link")) part.remove();
      else if (part.matches("a")) part.replaceWith(...part.childNodes);
    }
    const style = target.ownerDocument.querySelector('link[href$="math.css"]');
    if (style && !document.querySelector('link[href$="math.css"]')) {
      const added = style.cloneNode();
      added.href = new URL(style.getAttribute("href"), url);
      document.head.append(added);
    }
    return copy;
  }

  async function show(tapped) {
    const asked = link;
    try {
      card.replaceChildren(await find(new URL(asked.href)));
    } catch {
      if (tapped) location.href = asked.href;
      return;
    }
    if (link !== asked) return; // the reader has gone on
    if (tapped) card.append(Object.assign(document.createElement("a"), { href: asked.href, textContent: "Go there" }));
    document.querySelector("main").append(card);
    card.showPopover();
    for (const formula of card.querySelectorAll("mjx-container[display]")) {
      formula.style.zoom = Math.min(1, formula.clientWidth / formula.scrollWidth);
    }
    const at = asked.getClientRects()[0];
    const below = at.bottom + 6 + card.offsetHeight < innerHeight || at.top < card.offsetHeight;
    card.style.left = `${scrollX + Math.max(8, Math.min(at.left, document.documentElement.clientWidth - card.offsetWidth - 8))}px`;
    card.style.top = `${scrollY + (below ? at.bottom + 6 : at.top - card.offsetHeight - 6)}px`;
    asked.setAttribute("aria-describedby", card.id);
  }

  function close() {
    clearTimeout(opening);
    stay();
    link?.removeAttribute("aria-describedby");
    link = undefined;
    if (shown()) card.hidePopover();
  }
  function stay() {
    clearTimeout(closing);
    closing = undefined;
  }
  function ask(asked) {
    close();
    // a page from the disk may not read another one
    if (location.protocol === "file:" && !here(new URL(asked.href))) return false;
    link = asked;
    return true;
  }
  const linkOf = (event) => event.target.closest?.(LINKS);

  // the mouse moves: it is not the page that has moved under it
  addEventListener("pointermove", (event) => {
    if (event.pointerType === "touch") return;
    const over = linkOf(event);
    if (over === link || card.contains(event.target)) stay();
    if (over && over !== link && ask(over)) opening = setTimeout(show, 150);
    else if (link && !over && !card.contains(event.target)) {
      if (!shown()) close();
      else closing ??= setTimeout(close, 300);
    }
  });
  addEventListener("focusin", (event) => {
    const focused = linkOf(event);
    if (focused?.matches(":focus-visible") && ask(focused)) opening = setTimeout(show, 150);
  });
  addEventListener("focusout", (event) => event.target === link && close());
  addEventListener(
    "keydown",
    (event) => {
      if (event.key !== "Escape" || !shown()) return;
      if (!event.target.closest(FIELDS)) event.stopPropagation(); // it ends nothing else
      close();
    },
    true,
  );
  addEventListener("click", (event) => {
    const clicked = linkOf(event);
    if (event.pointerType === "touch" && clicked && clicked !== link && ask(clicked)) {
      event.preventDefault();
      show(true);
    } else if (!card.contains(event.target) || event.target.closest("a")) close();
  });
})();
