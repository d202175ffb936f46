/* Show what was found with the words around it. They come with a script that the build writes, because a page
   from the disk may not fetch another one, and the words of a page are no place for the source of its formulas. */
(function () {
  "use strict";

  const AROUND = 110;

  const escape = (word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  /* Words are found at their beginnings: "condition" is not meant where it says "preconditioning". */
  const begins = (word) => new RegExp(`(?<![\\p{L}\\p{N}])${escape(word)}`, "iu");

  /* The section of a page that fits best: its title counts more than its text; the earliest of equals. */
  function best(sections, words) {
    let found = sections[0], most = -1;
    for (const section of sections) {
      const count = words.reduce(
        (sum, word) => sum + 2 * begins(word).test(section[1]) + begins(word).test(section[2]), 0);
      if (count > most) [found, most] = [section, count];
    }
    return found;
  }

  /* Write a text with its words marked. */
  function mark(parent, text, words) {
    const any = `(?<![\\p{L}\\p{N}])(${words.map(escape).join("|")})`;
    const parts = words.length ? text.split(new RegExp(any, "giu")) : [text];
    parts.forEach((part, number) => {
      if (number % 2) parent.appendChild(document.createElement("mark")).textContent = part;
      else parent.append(part);
    });
  }

  function excerpt(text, words) {
    const places = words.map((word) => text.search(begins(word))).filter((place) => place >= 0);
    const middle = places.length ? Math.min(...places) : 0;
    let start = Math.max(0, middle - AROUND), end = Math.min(text.length, middle + 2 * AROUND);
    if (start) start = text.indexOf(" ", start) + 1;
    if (end < text.length) end = Math.max(text.lastIndexOf(" ", end), middle + 1);
    return `${start ? "… " : ""}${text.slice(start, end)}${end < text.length ? " …" : ""}`;
  }

  function show([page, title, anchor], words) {
    const sections = (window.SEARCH_TEXTS || {})[page] || [];
    const own = anchor && sections.find((section) => `#${section[0]}` === anchor);
    const section = own || (sections.length ? best(sections, words) : null);
    const item = document.createElement("li");
    const link = item.appendChild(document.createElement("a"));
    const root = document.documentElement.dataset.content_root;
    link.href = `${root}${page}.html${section && section !== sections[0] ? `#${section[0]}` : anchor || ""}`;
    const pageTitle = sections.length ? sections[0][1] : title;
    link.textContent = section && section !== sections[0] ? `${pageTitle} › ${section[1]}` : pageTitle;
    if (section) {
      const text = item.appendChild(document.createElement("p"));
      text.className = "context";
      mark(text, excerpt(section[2], words), words);
    }
    return item;
  }

  /* The entry whose name was typed comes first, other entries of the API after all explanations. */
  function rank([page, title], query) {
    if (!page.startsWith("book/api")) return 1;
    return `.${title}`.toLowerCase().endsWith(`.${query.trim().toLowerCase()}`) ? 0 : 2;
  }

  Search.query = (query) => {
    const [asked, terms, excluded, highlighted, objects] = Search._parseQuery(query);
    const results = Search._performSearch(asked, terms, excluded, highlighted, objects).reverse();
    results.sort((one, other) => rank(one, query) - rank(other, query));
    try { localStorage.removeItem("sphinx_highlight_terms"); } catch (error) { /* storage is blocked */ }
    const words = [...new Set([...highlighted, ...terms])].sort((a, b) => b.length - a.length);
    const seen = new Set();
    for (const result of results) {
      const item = show(result, words);
      const address = item.firstChild.href;
      if (!seen.has(address)) Search.output.append(item);
      seen.add(address);
    }
    Search.stopPulse();
    Search.title.textContent = "Search results";
    Search.status.textContent = seen.size
      ? `${seen.size} place${seen.size === 1 ? "" : "s"} found.`
      : "Nothing was found. Check the spelling, or use fewer words.";
  };
})();
