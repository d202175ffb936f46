/* Shows a lesson as slides; slides-key.js loads this when somebody asks for them.
   The slides are the page itself: its blocks stay where they are, so that what a reader has typed,
   dragged and opened lives on, and those of the other slides are hidden. Only words are copied: the
   heading, which stands on each slide of its section, and of paragraphs the sentences for a slide. */
(() => {
  "use strict";

  const LONG = 45; // words; of a longer paragraph a part is shown when it is asked for
  // how much larger than on the page, in a window of 1280 × 720
  const [LARGEST, LARGE, SMALLEST, SMALLEST_ON_PAPER] = [2.7, 2, 0.8, 0.3];
  const LEFT_OUT =
    "span, script, .guess, .guess-line, .lesson-line, .tag_setup, .toctree-wrapper, section:has(> div > .footnote-list), .cell:has(> details):not(:has(> .cell_output))";
  const LED = "ul, ol, dl, .pst-scrollable-table-container, div[class*='highlight-']"; // may follow a colon
  const WIDE = "mjx-container[display], pre, .pst-scrollable-table-container";

  const here = document.currentScript.src;
  const root = document.documentElement;
  const article = document.querySelector("article.bd-article");
  const button = document.querySelector(".slides-button");
  let slides = []; // of each its title, its blocks, and its place on the page
  let now = -1;

  function make(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }

  // --- words ---

  /** The words of a node; a formula counts as one. */
  const plain = (node) => node.data ?? (node.matches(".math") ? "Xx" : [...node.childNodes].map(plain).join(""));
  const count = (sentences) => sentences.reduce((sum, { text }) => sum + text.split(/\s+/).filter(Boolean).length, 0);

  /** The sentences of a paragraph: of each its words, and a copy. */
  function sentencesOf(paragraph) {
    const begins = [];
    let text = "";
    for (const child of paragraph.childNodes) {
      begins.push(text.length);
      text += plain(child);
    }
    const cuts = [[paragraph, 0, 0]];
    for (const found of text.matchAll(/(?<!\b(?:al|vs|cf|e\.g|i\.e|[A-Z]))[.?!][”"’)]*\s+(?=[“"(]?[A-Z0-9])/g)) {
      const at = found.index + found[0].length;
      const place = begins.findLastIndex((begin) => begin <= at);
      if (paragraph.childNodes[place].data) cuts.push([paragraph.childNodes[place], at - begins[place], at]);
      else if (begins[place] === at) cuts.push([paragraph, place, at]);
    }
    cuts.push([paragraph, paragraph.childNodes.length, text.length]);
    return cuts.slice(1).map(([node, offset, end], index) => {
      const range = document.createRange();
      range.setStart(...cuts[index]);
      range.setEnd(node, offset);
      return { text: text.slice(cuts[index][2], end), nodes: range.cloneContents() };
    });
  }

  /** A copy for a slide. Ids stay with the originals. */
  function copy(tag, kind, ...nodes) {
    const made = make(tag, { class: `slide-copy ${kind}` }, ...nodes);
    for (const part of made.querySelectorAll("[id]")) part.removeAttribute("id");
    return made;
  }

  /** A paragraph of these sentences: of a long one its first, what is in bold, and questions are shown at once. What opens
      a lesson is shown whole: the rest is about it. */
  function paragraphOf(sentences, opens) {
    const whole = opens || count(sentences) <= LONG;
    const shown = ({ text, nodes }, index) => whole || index === 0 || nodes.querySelector("strong") || /\?\s*$/.test(text);
    return copy("p", "", ...sentences.map((one, index) => make("span", { class: shown(one, index) ? "" : "slide-more" }, one.nodes)));
  }

  /** Whether these sentences stand with the block that follows them. */
  function leads(sentences, next) {
    if (next?.matches(".math")) return true;
    if (next?.matches(".explore")) return count(sentences) <= LONG / 2;
    return next?.matches(LED) && !/[.?!]\s*$/.test(sentences.at(-1).text);
  }

  // --- from the page to slides ---

  /** The blocks of a section in their order, each with the heading over it. */
  function* blocksOf(section) {
    const heading = section.querySelector(":scope > :is(h1, h2, h3, h4)");
    for (const block of section.children) {
      if (block.matches(LEFT_OUT)) continue;
      if (block.matches("section")) yield* blocksOf(block);
      else yield { block, heading };
    }
  }

  function build() {
    const all = [...blocksOf(article.querySelector("section"))];
    let slide, words, led;

    function begin({ block, heading }, kind = "") {
      slide = { place: block, heading, kind, blocks: [] };
      slides.push(slide);
      words = Infinity;
    }
    function title(block) {
      const nodes =
        slide.kind === "slide-cards"
          ? [slide.place.querySelector(".cards-title").firstChild.data]
          : [...slide.heading.cloneNode(true).childNodes].filter((node) => !node.matches?.(".headerlink, .report"));
      slide.title = copy("h1", `slide-title ${slide.kind}`, ...nodes);
      slide.title.tabIndex = -1;
      block.before(slide.title);
    }
    function add(block) {
      if (!slide.title) title(block);
      slide.blocks.push(block);
    }

    slides = [];
    all.forEach((item, index) => {
      const { block, heading } = item;
      const next = all[index + 1]?.block;
      if (block === heading) {
        begin(item, block.matches("h1") ? "slide-first" : "slide-heading");
        words = 0;
        title(block);
      } else if (block.matches("p")) {
        let end = block;
        const say = (sentences) => {
          const made = paragraphOf(sentences, heading.matches("h1"));
          end.after(made);
          end = made;
          add(made);
        };
        const sentences = sentencesOf(block);
        // a sentence goes on behind its formula
        if (all[index - 1].block.matches(".math") && /^\s*[a-z(]/.test(sentences[0].text)) say([sentences.shift()]);
        led = sentences.length > 0 && leads(sentences, next);
        const lead = led ? sentences.splice(count(sentences) > LONG ? sentences.length - 1 : 0) : [];
        if (sentences.length) {
          const length = Math.min(LONG, count(sentences)); // of which at most so many are shown at first
          if (words + length > LONG) begin(item);
          words = (words === Infinity ? 0 : words) + length;
          say(sentences);
        }
        if (led) {
          begin(item);
          say(lead);
        }
      } else {
        // an answer stands under its question, a formula under the words that lead to it
        if (!led && !block.matches("details")) begin(item, block.matches(".cards") ? "slide-cards" : "");
        led = false;
        words = Infinity;
        add(block);
      }
    });
    for (const { title, blocks } of slides) for (const block of [title, ...blocks]) block.classList.add("slide-on");
    for (const picture of article.querySelectorAll("img")) {
      picture.loading = "eager"; // or it would be missing on paper
      if (picture.width > 1.9 * picture.height) picture.closest("figure")?.classList.add("slide-wide");
    }
  }

  // --- one slide ---

  /** Show a slide as large as it can be, and no smaller than can be read; return its height without the heading. */
  function fit({ blocks }, smallest = SMALLEST, width = root.clientWidth, height = innerHeight - bar.offsetHeight) {
    const unit = Math.max(0.5, Math.min(width / 1280, (height + 50) / 720)); // a phone has no room for a slide
    root.style.setProperty("--slide-unit", unit);
    root.style.setProperty("--slide-height", `${height}px`);
    const high = () => blocks.at(-1)?.getBoundingClientRect().bottom - blocks[0]?.getBoundingClientRect().top;
    const fits = (size) =>
      article.offsetHeight <= height &&
      (size <= LARGE || high() < height / 2) &&
      !blocks.some((block) => [block, ...block.querySelectorAll(WIDE)].some((part) => part.scrollWidth > part.clientWidth + 1 && part.matches(WIDE)));
    for (let size = LARGEST; ; size *= 0.95) {
      for (const block of blocks) block.style.setProperty("--slide-zoom", size * unit);
      if (size * 0.95 < smallest / Math.min(1, unit) || fits(size)) return high();
    }
  }
  const refit = () => now >= 0 && !root.matches(".slides-paper") && fit(slides[now]);
  // what somebody works with does not change its size under the hand
  const sizes = new ResizeObserver(() => document.activeElement.closest(".exercise, .explore-stage") || refit());

  function mark(slide) {
    for (const block of article.querySelectorAll(".slide-now")) block.classList.remove("slide-now");
    for (const block of [slide.title, ...slide.blocks]) block.classList.add("slide-now");
  }

  function go(number) {
    document.getElementById("hover-card")?.hidePopover();
    now = Math.max(0, Math.min(slides.length - 1, number));
    const slide = slides[now];
    mark(slide);
    place.textContent = `${now + 1} / ${slides.length}`;
    [back.disabled, on.disabled] = [now === 0, now === slides.length - 1];
    more.disabled = !slide.blocks.some((block) => block.querySelector(".slide-more"));
    history.replaceState(null, "", `#slide=${now + 1}`);
    sizes.disconnect();
    fit(slide);
    for (const block of slide.blocks) sizes.observe(block);
    scrollTo(0, 0);
    if (!bar.contains(document.activeElement)) slide.title.focus({ preventScroll: true });
  }

  // --- the bar ---

  function control(text, name, act) {
    const made = make("button", { type: "button", "aria-label": name, title: name }, text);
    made.addEventListener("click", () => act());
    return made;
  }
  const back = control("‹", "Previous slide (←)", () => go(now - 1));
  const on = control("›", "Next slide (→)", () => go(now + 1));
  const place = make("span", { role: "status", class: "slides-place" });
  const more = control("More", "More of the text (N)", tellMore);
  more.setAttribute("aria-pressed", false);
  const letters = make("input", { type: "checkbox" });
  letters.checked = root.dataset.letterKeys !== "off";
  letters.addEventListener("change", () => {
    root.dataset.letterKeys = letters.checked ? "on" : "off";
    try {
      localStorage.setItem("letter-keys", root.dataset.letterKeys);
    } catch {
      // storage is blocked: it is so until the page is left
    }
  });
  const keys = make("details", { class: "slides-keys" },
    make("summary", { "aria-label": "Keys", title: "Keys" }, "?"),
    make("div", {}, "→ or Space: next · ←: previous · Home, End: first, last · N: more of the text · P: slides on, off · Esc: end",
      make("label", {}, letters, " The letters N and P are keys")));
  const bar = make("nav", { class: "slides-bar", "aria-label": "Slides" }, keys, more, back, place, on, control("×", "End the slides (Esc)", end));

  function tellMore() {
    more.setAttribute("aria-pressed", root.classList.toggle("slides-more"));
    refit();
  }

  // --- begin and end ---

  const style = make("link", { rel: "stylesheet", href: new URL("slides.css", here) });

  /** The number of the slide that shows an element of the page. */
  const numberOf = (element) =>
    slides.findLastIndex(({ place }) => place.contains(element) || place.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING);

  /** Show a slide: this one, or the one where the reader is. */
  function begin(number) {
    const upper = ({ block }) => block.getBoundingClientRect().top < innerHeight / 2;
    const read = scrollY > 0 && [...blocksOf(article.querySelector("section"))].findLast(upper);
    build();
    button.focus({ preventScroll: true }); // a list of contents over the page goes
    style.sheet.disabled = false;
    root.classList.add("slides");
    article.closest("main").append(bar);
    go(number ?? (read ? numberOf(read.block) : 0));
  }

  function end() {
    const { place } = slides[now];
    const [first, held] = [now === 0, bar.contains(document.activeElement)];
    now = -1;
    sizes.disconnect();
    for (const made of article.querySelectorAll(".slide-copy")) made.remove();
    for (const block of article.querySelectorAll(".slide-on")) {
      block.classList.remove("slide-on", "slide-now", "slide-begins");
      block.style.removeProperty("--slide-zoom");
    }
    root.classList.remove("slides");
    style.sheet.disabled = true;
    bar.remove();
    if (location.hash.startsWith("#slide=")) history.replaceState(null, "", location.pathname + location.search);
    if (first) scrollTo(0, 0);
    else place.scrollIntoView({ block: "center" });
    if (held) button.focus({ preventScroll: true });
  }

  /** An entry of the history is one visit to the slides, so that Back leaves them. */
  function toggle() {
    if (now >= 0) return end();
    history.pushState(null, "", "#slide=1");
    begin();
  }

  /** Follow the address: to a slide, to what a link on a slide names, or back to the page. */
  function follow() {
    const number = /^#slide=(\d+)$/.exec(location.hash)?.[1];
    if (number) return now < 0 ? begin(number - 1) : go(number - 1);
    if (now < 0) return;
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (article.contains(target) && !target.closest(LEFT_OUT)) return go(numberOf(target));
    end();
    target?.scrollIntoView();
  }

  const MOVES = {
    ArrowRight: () => go(now + 1), PageDown: () => go(now + 1), ArrowLeft: () => go(now - 1), PageUp: () => go(now - 1),
    Home: () => go(0), End: () => go(slides.length - 1), Escape: end, n: tellMore, " ": (event) => go(now + (event.shiftKey ? -1 : 1)),
  };
  addEventListener("keydown", (event) => {
    if (now < 0 || event.ctrlKey || event.metaKey || event.altKey || event.target.closest(".explore-stage")) return;
    if (event.key === " " && event.target.closest("button, summary, a")) return; // which it presses
    if (event.key === "n" && root.dataset.letterKeys === "off") return;
    const move = MOVES[event.key];
    if (!move) return;
    event.preventDefault();
    move(event);
  });
  addEventListener("resize", refit);
  document.fonts.ready.then(refit);

  // --- on paper: each slide is a page ---

  addEventListener("beforeprint", () => {
    if (now < 0) return;
    root.classList.add("slides-paper");
    for (const slide of slides) {
      mark(slide);
      const used = fit(slide, SMALLEST_ON_PAPER, 1280, 670);
      slide.blocks[0]?.classList.add("slide-begins");
      slide.blocks[0]?.style.setProperty("--slide-space", `${slide.kind ? 0 : Math.max(0, (580 - used) / 2)}px`);
    }
  });
  addEventListener("afterprint", () => {
    root.classList.remove("slides-paper");
    if (now >= 0) go(now);
  });

  window.slides = { toggle, follow };
  style.addEventListener("load", () => (location.hash.startsWith("#slide=") ? follow() : toggle()), { once: true });
  document.head.append(style);
})();
