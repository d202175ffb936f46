// A formula or a table that is wider than the page is drawn smaller; what still is, is returned.
(width) => {
  for (const block of document.querySelectorAll(
      "article div.math mjx-container, article span.math mjx-container, article table")) {
    const math = block.querySelector("mjx-math");
    const wide = Math.max(block.scrollWidth, math ? math.getBoundingClientRect().width : 0);
    const number = block.parentElement.querySelector(".eqno");
    const room = width - (number ? number.getBoundingClientRect().width + 12 : 0);
    if (wide > room) block.style.zoom = Math.max(0.4, 0.98 * room / wide);
  }
  return [...document.querySelectorAll("article *")].filter((e) => {
    const box = e.getBoundingClientRect();
    const hidden = e.closest("mjx-assistive-mml, .visually-hidden");
    return box.width > 1 && box.right > width + 2 && !hidden;
  }).map((e) => e.outerHTML.slice(0, 120));
}
