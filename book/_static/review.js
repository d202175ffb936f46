/* The page My course: what is done, due and left; the cards that are due, one after the other; and the reader's progress as a file. */
(() => {
  "use strict";

  const { cards, answer, deal, due, element, isCard, isDone, next, refresh, say, solved, storage, today } = window.PROGRESS;
  const A_DAY = 20;
  const pageOf = {};
  for (const [page, all] of Object.entries(window.CARDS)) for (const id in all) pageOf[id] = page;
  const many = (count, thing) => `${count} ${thing}${count === 1 ? "" : "s"}`;

  const chapters = document.querySelectorAll(".course-list > details");
  const titleOf = (page) => document.querySelector(`.course-list a[href^="${page}.html"]`).textContent;

  // --- the course: what is done, what is due, and the time that is left ---

  const ZERO = { all: 0, done: 0, exercises: 0, solved: 0, cards: 0, known: 0, due: 0, minutes: 0 };
  const of = (part, whole, thing) => (whole ? ` · ${part} of ${many(whole, thing)}` : "");
  const time = (minutes) => (minutes < 60 ? `${minutes} minutes` : many(Math.round(minutes / 6) / 10, "hour"));

  function tell({ exercises, solved, cards, known, due }) {
    return of(solved, exercises, "exercise") + of(known, cards, "card") + (due ? `, ${due} due` : "");
  }

  /** Write into each lesson and chapter how far it is; an appendix is not needed to have done all. */
  function overview() {
    const all = cards(), total = { ...ZERO };
    for (const chapter of chapters) {
      const sum = { ...ZERO };
      for (const item of chapter.querySelectorAll("li")) {
        const page = item.querySelector("a").getAttribute("href").split(".html")[0];
        const [cells, ids, appendix] = window.LESSONS[page];
        const known = ids.filter((id) => all[id]), done = isDone(page), minutes = Number(item.dataset.minutes);
        const counts = { exercises: cells.length, solved: cells.filter(solved).length, cards: ids.length, known: known.length };
        counts.due = known.filter((id) => due(all[id]) <= today()).length;
        item.querySelector(".course-state").textContent = time(minutes) + tell(counts);
        const way = appendix ? {} : { all: 1, done: Number(done), minutes: done ? 0 : minutes };
        for (const [name, value] of Object.entries({ ...counts, ...way })) for (const one of [sum, total]) one[name] += value;
      }
      chapter.querySelector(".course-state").textContent = text(sum);
    }
    const line = document.querySelector(".course-total");
    line.textContent = `${text(total)}. `;
    if (total.due) line.append(element("a", { href: "#review-deck" }, "Answer the cards that are due."));
    const page = next(), link = document.querySelector(".go-on a");
    if (page) Object.assign(link, { href: `${page}.html`, textContent: `Go on: ${titleOf(page)}` });
  }
  const text = (sum) => `${sum.done} of ${many(sum.all, "lesson")}${tell(sum)} · ${sum.minutes ? `${time(sum.minutes)} left` : "all done"}`;

  // --- the cards that are due ---

  const choice = element("select", { onchange: () => draw() }, new Option("all chapters, mixed", ""));
  for (const topic of chapters) choice.append(new Option(topic.querySelector("strong").textContent, `${topic.dataset.topic}/`));
  const line = element("p", { className: "card-said", role: "status", tabIndex: -1 });
  const place = element("div");
  document.getElementById("review-deck").append(element("label", { className: "review-tools" }, "Cards of ", choice), line, place);

  function counted(known, waiting, now) {
    if (now.length) {
      const later = waiting.length - now.length;
      return `${many(now.length, "card")} to answer today${later ? `, and ${later} more on the next days` : ""}.`;
    }
    if (waiting.length) return `You have answered ${A_DAY} cards today, which is enough. ${many(waiting.length, "card")} will be asked on the next days.`;
    if (known.length) return `No card is due today. The next one is due in ${many(Math.min(...known.map(([, card]) => due(card))) - today(), "day")}.`;
    return "There are no cards here yet. Answer those at the end of a lesson, and they come back on this page.";
  }

  /** Show the card that has waited longest. */
  function draw(focus) {
    const all = Object.entries(cards());
    const known = all.filter(([id]) => pageOf[id]?.startsWith(choice.value));
    const waiting = known.filter(([, card]) => due(card) <= today()).sort(([a, x], [b, y]) => due(x) - due(y) || (a < b ? -1 : 1));
    const asked = all.filter(([, [, day, times]]) => day === today() && times > 1).length;
    const now = waiting.slice(0, Math.max(0, A_DAY - asked));
    say(line, counted(known, waiting, now));
    const id = now[0]?.[0];
    if (place.firstChild?.id !== (id && `card-${id}`)) {
      place.replaceChildren();
      if (id) show(id);
    }
    if (focus) (place.querySelector("summary") ?? line).focus();
  }

  function show(id) {
    const page = pageOf[id];
    const card = element("details", { className: "card", id: `card-${id}`, innerHTML: window.CARDS[page][id] });
    deal(card, (knew) => {
      answer(id, knew);
      draw(true);
    });
    const from = element("a", { href: `${page}.html` }, titleOf(page));
    place.append(card, element("p", { className: "card-from" }, "From the lesson ", from));
  }

  function showAll() {
    overview();
    draw();
  }
  showAll();
  addEventListener("progress", showAll);

  // --- the file: all that the course keeps in this browser ---

  const NAME = "Learning as Optimization";
  const CARDS = "optdl:cards";
  const LAST = "optdl:lesson";
  const isAnswer = (key) => key.startsWith("optdl:answer:");
  const told = element("p", { className: "card-said", role: "status" });
  const picker = element("input", { type: "file", accept: ".json", hidden: true, onchange: load });

  function save() {
    const own = storage((all) => Object.entries(all).filter(fits)) ?? []; // a damaged part would cost the others
    const kept = { ...Object.fromEntries(own), [CARDS]: JSON.stringify(cards()) };
    const href = URL.createObjectURL(new Blob([JSON.stringify({ progress: NAME, version: 1, kept })], { type: "application/json" }));
    element("a", { href, download: `progress-${new Date().toLocaleDateString("sv")}.json` }).click();
    setTimeout(() => URL.revokeObjectURL(href), 60_000);
    told.textContent = "Your answers, guesses and cards are in the file.";
  }

  const fits = ([key, value]) => {
    try {
      if (key === CARDS) return Object.values(JSON.parse(value)).every(isCard);
      return isAnswer(key) ? typeof JSON.parse(value).text === "string" : key.startsWith("optdl:") && typeof value === "string";
    } catch {
      return false;
    }
  };

  /** Return what a file keeps, or nothing if this page has not written it. */
  function parse(text) {
    try {
      const { progress, version, kept } = JSON.parse(text);
      return progress === NAME && version === 1 && Object.entries(kept).every(fits) && kept;
    } catch {
      return null;
    }
  }

  const put = (entries) => entries.map(([key, value]) => storage((all) => (all.setItem(key, value), true))).every(Boolean);

  /** Take from a file cards that were answered later and what is missing here; where answers differ, the reader decides. */
  async function load() {
    const { [CARDS]: theirs = "{}", ...others } = parse(await picker.files[0].text()) || { [CARDS]: "" };
    picker.value = "";
    if (!theirs) {
      told.textContent = "Nothing was loaded: this is not a file of your progress, or it is damaged. Choose one that “Save my progress to a file” has made.";
      return;
    }
    const text = ([key, value]) => (isAnswer(key) ? JSON.parse(value).text : value);
    const own = ([key]) => storage((kept) => [[key, kept.getItem(key)]].find(fits));
    const entries = Object.entries(others);
    const agrees = ([key, value]) => isAnswer(key) && JSON.parse(value).passed === text([key, value]);
    const differ = entries.filter((entry) => own(entry) && text(own(entry)) !== text(entry));
    const missing = entries.filter((entry) => !own(entry) || (!differ.includes(entry) && agrees(entry)));
    const whole = put(missing);
    cards(JSON.parse(theirs));
    refresh();
    told.textContent = whole ? "The file is loaded." : "The file is loaded, but this browser did not keep all of it.";
    const work = differ.filter(([key]) => key !== LAST);
    if (!work.length) return;
    told.append(` In ${many(work.length, "place")} (exercises, guesses, cells of pages) the file has another answer than this browser, whose answer was kept. `);
    const all = () => {
      told.textContent = put(work) ? "The answers of the file have replaced those of this browser." : "This browser did not keep all answers of the file.";
      refresh();
    };
    told.append(element("button", { onclick: all }, "Take the answers of the file"));
  }

  const button = (text, onclick) => element("button", { onclick }, text);
  document.querySelector(".progress-file").append(
    element("div", { className: "review-tools" }, button("Save my progress to a file", save), button("Load it", () => picker.click()), picker),
    told,
  );
})();
