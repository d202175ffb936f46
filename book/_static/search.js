/* Search the words of all pages, and show what was found with the words around it. They come with a script that the
   build writes, because a page from the disk may not fetch another one. Both are loaded with the first search. */
(function () {
  "use strict";

  const AROUND = 110;
  const TEXTS = window.SEARCH_TEXTS || {}, ROWS = window.SEARCH_ROWS || {};
  const COMMON = new Set(("a and are as at be but by for if in into is it near no not of on or such that the their then there these " +
    "they this to was will with").split(" "));

  /* The words of a question, and their beginnings, which all forms of a word have: "averages", "averaging". */
  const split = (text) => text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) || [];
  const stem = (word) => word.replace(/(?<=.{3})(?:ations?|ings?|ed|ies|es|(?<![isu])s|e|y)$/u, "");

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

  /* What is shown of a section; its page alone where that is the first one. */
  function place(page, section, anchor) {
    const [first] = TEXTS[page];
    const inner = section !== first;
    return {
      page,
      name: section[1],
      address: `${document.documentElement.dataset.content_root}${page}.html${inner ? `#${section[0]}` : anchor || ""}`,
      title: inner ? `${first[1]} › ${section[1]}` : first[1],
      text: section[2],
    };
  }

  function show({ address, title, text }, words) {
    const item = document.createElement("li");
    const link = item.appendChild(document.createElement("a"));
    link.href = address;
    link.textContent = title;
    const context = item.appendChild(document.createElement("p"));
    context.className = "context";
    mark(context, excerpt(text, words), words);
    return item;
  }

  /* Explanations come before the API, those with the words in their title first. An entry of the API whose name was
     typed follows these; it is the first of all if only code has such a name. */
  function rank({ page, name, title }, query, terms) {
    if (page.startsWith("book/api")) {
      if (!`.${name}`.toLowerCase().endsWith(`.${query.toLowerCase()}`)) return 5;
      if (!/[_.]|[a-z][A-Z]/.test(query)) return 3;
      return name.endsWith(query) ? 0 : 1;
    }
    if (!terms.every((term) => begins(term).test(title))) return 4;
    return /\/(?:appendix-|exercises|coverage)/.test(page) || /^Exercise \d/.test(name) ? 2 : 1;
  }

  /* Return the places for a query, and the words to be marked in them: of each page that has all words the section that
     fits best, and each section with all of them in its title. */
  function find(query) {
    const words = split(query).filter((word) => !COMMON.has(word) && !/^\d+$/.test(word));
    const terms = [...new Set(words.map(stem))];
    const phrase = query.toLowerCase();
    const has = (text) => terms.every((term) => begins(term).test(text));
    const places = [];
    for (const [page, sections] of Object.entries(TEXTS)) {
      if (!terms.length || !has(sections.flat().join(" "))) continue;
      for (const section of new Set([best(sections, terms), ...sections.filter(([, title]) => has(title))])) {
        const found = place(page, section);
        const often = terms.reduce((sum, term) => sum + section[2].split(begins(term)).length - 1, 0);
        found.score = Math.min(often, 9) + 10 * section[2].toLowerCase().includes(phrase) +
          20 * section[1].toLowerCase().includes(phrase) + 40 * (section[1].toLowerCase() === phrase);
        found.rank = rank(found, query, terms);
        places.push(found);
      }
    }
    return [places.sort((one, other) => one.rank - other.rank || other.score - one.score),
      [...new Set([...words, ...terms])].sort((a, b) => b.length - a.length)];
  }

  /* A row of the course, such as L1-26: the lesson that teaches it, its exercises, and the row itself. */
  function findRow(query) {
    const [, source, number] = query.match(/^(L[12]|P|F)[-–\s]?(\d\d?)$/i) || [];
    const rows = (source && ROWS[`${source.toUpperCase()}-${number.padStart(2, "0")}`]) || [];
    return rows.map(([page, anchor, title]) => {
      const own = TEXTS[page].find((section) => section[0] === anchor) ||
        TEXTS[page].find((section) => section[1].endsWith(title));
      if (own) return place(page, own);
      const found = place(page, TEXTS[page][0], `#${anchor}`);
      return { ...found, title: `${found.title} › ${title}`, text: "" };
    });
  }

  /* How many letters are changed, added, left out or swapped with the next one. */
  function distance(one, other) {
    let before = [], row = Array.from({ length: other.length + 1 }, (_, j) => j);
    for (let i = 1; i <= one.length; i += 1) {
      const next = [i];
      for (let j = 1; j <= other.length; j += 1) {
        next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (one[i - 1] !== other[j - 1]));
        if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]) next[j] = Math.min(next[j], before[j - 2] + 1);
      }
      [before, row] = [row, next];
    }
    return row[other.length];
  }

  /* How often each word stands in the course. */
  function countWords() {
    const counts = new Map();
    for (const section of Object.values(TEXTS).flat()) {
      const all = `${section[1]} ${section[2]}`.toLowerCase().match(/[\p{L}\p{N}_]{3,}/gu) || [];
      for (const word of all) counts.set(word, (counts.get(word) || 0) + 1);
    }
    return counts;
  }
  let counts;

  /* Return the words of a query that no page has, each with the most frequent of the words next to it. */
  function correct(query) {
    counts ??= countWords();
    const known = [...counts.keys()];
    const wrong = split(query).filter(
      (word) => word.length > 2 && !COMMON.has(word) && !known.some((term) => term.includes(stem(word))));
    return wrong.map((word) => {
      let near = word.length < 8 ? 1 : 2, found;
      for (const [other, count] of counts) {
        if (Math.abs(other.length - word.length) > near) continue;
        const far = distance(word, other);
        if (far > near || (far === near && found && count <= counts.get(found))) continue;
        [near, found] = [far, other];
      }
      return [word, found];
    }).filter(([, found]) => found);
  }

  /* Return the places for a query, the words to be marked in them, and what is said of a misspelled word. */
  function answer(query) {
    const row = findRow(query);
    if (row.length) return [row, [], ""];
    const found = find(query);
    if (found[0].length) return [...found, ""];
    let other = query, said = "";
    for (const [word, near] of correct(query)) {
      other = other.replace(new RegExp(escape(word), "giu"), near);
      said += `Nothing for “${word}”; shown: ${near}. `;
    }
    return said ? [...find(other), said] : [[], [], ""];
  }

  /* Search while somebody types in a field. The arrow keys go to what was found and back, and a letter goes to the field. */
  function attach(field) {
    const box = field.form.parentElement;
    const [summary, list] = box.querySelector(".search-results").children;
    const isPage = !field.closest("[role=search]");
    let waiting;
    function search() {
      clearTimeout(waiting);
      waiting = undefined;
      const query = field.value.trim();
      const [places, words, said] = query ? answer(query) : [[], [], ""];
      const found = [...new Map(places.map((one) => [one.address, one])).values()];
      list.replaceChildren(...found.map((one) => show(one, words)));
      summary.textContent = !query ? "" : found.length
        ? `${said}${found.length} place${found.length === 1 ? "" : "s"} found.`
        : "Nothing was found. Check the spelling, or use fewer words.";
      // so that Back leads to what was found
      if (isPage) history.replaceState(null, "", `?${new URLSearchParams({ q: field.value })}`);
    }
    field.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(search, 150);
    });
    field.form.addEventListener("submit", (event) => {
      if (!isPage) return;
      event.preventDefault();
      search();
    });
    box.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) {
        if (waiting) search();
        const stops = [field, ...list.querySelectorAll("a")];
        stops[Math.max(0, stops.indexOf(event.target) + step)]?.focus();
        event.preventDefault();
      } else if (event.target !== field && event.key.length === 1) {
        field.focus();
        event.stopPropagation(); // the letter is no key of the page
      }
    });
    if (field.value) search();
  }

  const typed = new URLSearchParams(location.search).get("q");
  const field = document.querySelector(".bd-search-container input");
  if (field && typed) field.value = typed;
  attach(field ?? document.querySelector(".search-button__wrapper input"));
})();
