/* Begins with the exercises of a page; from a file, where a browser loads no module, it says what to do. */
(() => {
  const load = (name) => JSON.parse(localStorage.getItem(`optdl:answer:${name}`));
  // Code that answers an exercise is folded, as a hint is, until the reader's own answer has passed.
  const fold = (code) => {
    const [, answer] = /\banswer-of-(\S+)/.exec(code.className);
    const content = { className: "exercise-code", innerHTML: "<summary>Code that answers an exercise</summary>" };
    const details = Object.assign(document.createElement("details"), content);
    details.dataset.answer = answer;
    try {
      details.open = load(answer).passed !== undefined;
    } catch {
      // nothing is kept
    }
    code.replaceWith(details);
    details.append(code);
  };
  // The reader's answers stand there before they are drawn; what they stand in for is remembered.
  const fill = () => {
    document.querySelectorAll(":not(details) > [class*='answer-of-']").forEach(fold);
    for (const cell of document.querySelectorAll(".exercise-cell:not([data-blank])")) {
      if (!cell.nextSibling) continue; // the browser still reads it
      try {
        const shown = cell.querySelector("pre");
        const { text } = load(cell.id.slice(5));
        if (text !== undefined) [cell.dataset.blank, shown.textContent] = [shown.textContent, text];
      } catch {
        // nothing is kept
      }
    }
  };
  const reading = new MutationObserver(fill);
  reading.observe(document, { childList: true, subtree: true });
  const here = document.currentScript.src;
  const tell = (text) =>
    document.querySelectorAll(".exercise").forEach((box) => {
      box.append(Object.assign(document.createElement("p"), { className: "exercise-status", textContent: text }));
    });
  addEventListener("DOMContentLoaded", () => {
    reading.disconnect();
    fill();
    if (location.protocol === "file:")
      tell(
        "To solve this exercise on the page, serve the folder of the site, because a browser does not let a page that is " +
          "opened from a file load Python: run “python -m http.server” in the folder, and open http://localhost:8000.",
      );
    else {
      const script = new URL("exercise.js", here);
      const begin = () =>
        import(script).catch(async () => {
          const answer = await fetch(script).catch(() => undefined);
          const kind = answer?.headers.get("Content-Type") ?? "";
          if (!answer?.ok) tell("A part of this page could not be loaded. Connect to the network, and load the page again.");
          else if (!/javascript/.test(kind))
            tell(
              `The server of this site sends scripts as “${kind}”, and a browser runs only what is sent as “text/javascript”. ` +
                "Whoever runs the server can set this for files whose names end in .js; the notebook of the assignment has this exercise, too.",
            );
          else tell("This browser cannot run Python in a page. The notebook of the assignment has this exercise, too.");
        });
      // when the reader comes near the first exercise
      const near = new IntersectionObserver(
        (entries) => {
          if (!entries.some((entry) => entry.isIntersecting)) return;
          near.disconnect();
          begin();
        },
        { rootMargin: "1000px 0px" },
      );
      document.querySelectorAll(".exercise").forEach((box) => near.observe(box));
    }
  });
})();
