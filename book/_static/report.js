/* “Something wrong here?” at each heading and each check: a mail or a form for an issue, with what its reader has to know.
   A page has this script where `_config.yml` names an address. */
(() => {
  "use strict";

  const { to, version } = document.currentScript.dataset;
  const LONGEST = 1500; // characters of code, or of what a check says: an address cannot be much longer
  const cut = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST)} …` : text);

  /** Return a link that tells where it stands, and what `more` tells by then. */
  window.reportLink = (place, text, more = () => ({})) => {
    const link = document.createElement("a");
    [link.className, link.textContent, link.title] = ["report", text, "Something wrong here?"];
    link.setAttribute("aria-label", link.title);
    if (!to.startsWith("mailto:")) [link.target, link.rel] = ["_blank", "noopener"];
    const fill = () => {
      const page = `${location.href.split("#")[0]}#${place}`;
      const parts = Object.entries({ Page: page, Version: version, ...more() }).filter(([, value]) => value);
      const lines = parts.map(([name, value]) => (value.includes("\n") ? `${name}:\n\n${cut(value)}` : `${name}: ${cut(value)}`));
      const title = encodeURIComponent(`Something wrong in “${document.title}”`);
      const body = encodeURIComponent(["What is wrong?\n", ...lines].join("\n"));
      link.href = `${to}?${to.startsWith("mailto:") ? "subject" : "title"}=${title}&body=${body}`;
    };
    link.addEventListener("click", fill);
    fill();
    return link;
  };

  for (const heading of document.querySelectorAll("article :is(h1, h2, h3)"))
    heading.append(reportLink(heading.closest("[id]").id, "⚑"));
})();
