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

  /* What is shown of a page: the section that was asked for, or the one that fits best. */
  function place([page, title, anchor], words) {
    const sections = (window.SEARCH_TEXTS || {})[page] || [];
    const own = sections.find((section) => `#${section[0]}` === anchor) ||
      (anchor && sections.find((section) => section[1].endsWith(title)));
    const section = own || (sections.length ? best(sections, words) : null);
    const inner = section && section !== sections[0];
    const pageTitle = sections.length ? sections[0][1] : title;
    return {
      page,
      own,
      name: title,
      address: `${document.documentElement.dataset.content_root}${page}.html${inner ? `#${section[0]}` : anchor || ""}`,
      title: inner ? `${pageTitle} › ${section[1]}` : pageTitle,
      text: section ? section[2] : "",
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
    return page.includes("/appendix-") ? 2 : 1;
  }

  /* Return the places for a query, and the words to be marked in them. */
  function find(query) {
    const stemmer = new Stemmer();
    const asked = splitQuery(query.toLowerCase());
    const words = asked.filter((word) => stopwords.indexOf(word) < 0 && !/^\d+$/.test(word));
    const terms = [...new Set(words.map((word) => stemmer.stemWord(word)))];
    const none = new Set();
    const results = Search._performSearch(query, new Set(terms), none, none, new Set(asked)).reverse();
    const marked = [...new Set([...words, ...terms])].sort((a, b) => b.length - a.length);
    const places = results.map((result) => place(result, marked));
    return [places.sort((one, other) => rank(one, query, terms) - rank(other, query, terms)), marked];
  }

  /* A row of the course, such as L1-26: the lesson that teaches it, its exercises, and the row itself. */
  function findRow(query) {
    const [, source, number] = query.match(/^(L[12]|P|F)[-–\s]?(\d\d?)$/i) || [];
    const rows = (source && (window.SEARCH_ROWS || {})[`${source.toUpperCase()}-${number.padStart(2, "0")}`]) || [];
    return rows.map(([page, anchor, title]) => {
      const found = place([page, title, `#${anchor}`], []);
      return found.own ? found : { ...found, title: `${found.title} › ${title}`, text: "" };
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

  /* Return the words of a query that no page has, each with the most frequent of the words next to it. */
  function correct(query) {
    const stemmer = new Stemmer();
    const known = [...Object.keys(Search._index.terms), ...Object.keys(Search._index.titleterms)];
    const wrong = splitQuery(query.toLowerCase()).filter(
      (word) => word.length > 2 && stopwords.indexOf(word) < 0 && !known.some((term) => term.includes(stemmer.stemWord(word))));
    if (!wrong.length) return [];
    const counts = new Map();
    for (const section of Object.values(window.SEARCH_TEXTS || {}).flat()) {
      const all = `${section[1]} ${section[2]}`.toLowerCase().match(/[\p{L}\p{N}_]{3,}/gu) || [];
      for (const word of all) counts.set(word, (counts.get(word) || 0) + 1);
    }
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

  Search.query = (typed) => {
    const query = typed.trim();
    let said = "";
    let [places, words] = [findRow(query), []];
    if (!places.length) [places, words] = find(query);
    if (!places.length) {
      let other = query;
      for (const [word, found] of correct(query)) {
        other = other.replace(new RegExp(escape(word), "giu"), found);
        said += `Nothing for “${word}”; shown: ${found}. `;
      }
      if (said) [places, words] = find(other);
    }
    const seen = new Set();
    for (const one of places) {
      if (!seen.has(one.address)) Search.output.append(show(one, words));
      seen.add(one.address);
    }
    Search.stopPulse();
    Search.title.textContent = "Search results";
    Search.status.textContent = seen.size
      ? `${said}${seen.size} place${seen.size === 1 ? "" : "s"} found.`
      : "Nothing was found. Check the spelling, or use fewer words.";
  };
})();
