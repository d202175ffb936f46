/* What the reader has done, kept in this browser: marks in lists of lessons and exercises, the way on, and cards one after the other. */
(() => {
  "use strict";

  const CARDS = "optdl:cards";
  const LAST = "optdl:lesson";
  /** How many days pass before a card of each box is asked again. */
  const DAYS = [1, 3, 7, 14, 30, 90];
  const BOOK = new URL("../book/", document.currentScript.src).href;
  const lessons = Object.entries(window.LESSONS);
  let memory = {}; // cards that the browser does not keep

  function storage(act) {
    try {
      return act(localStorage);
    } catch {
      return null;
    }
  }
  const read = (key) => storage((kept) => JSON.parse(kept.getItem(key))) ?? {};

  /** Return today as a number of days, by the reader's calendar. */
  function today() {
    const now = new Date();
    return Date.UTC(now.getFullYear(), now.getMonth(), now.getDate()) / 864e5;
  }

  // A card is its box, the day of its last answer, and the number of its answers.
  const isCard = (card) => Array.isArray(card) && card.length === 3 && card.every(Number.isInteger) && card[0] > 0 && card[0] <= DAYS.length;

  /** Take those cards of another collection that were answered later. */
  function merge(all, others) {
    for (const [id, card] of Object.entries(others)) {
      const mine = all[id] ?? [0, 0, 0];
      if (isCard(card) && (card[1] - mine[1] || card[2] - mine[2]) > 0) all[id] = card;
    }
    return all;
  }

  /** Return the answered cards, with those of another collection. */
  function cards(others = memory) {
    const all = merge(merge({}, read(CARDS)), others);
    // after the clock was set back, an answer of a later day counts as today's
    for (const card of Object.values(all)) card[1] = Math.min(card[1], today());
    const text = JSON.stringify(all);
    memory = storage((kept) => ((kept.getItem(CARDS) ?? "{}") === text || kept.setItem(CARDS, text), true)) ? {} : all;
    return all;
  }

  const due = ([box, day]) => day + DAYS[box - 1];

  /** Move a card to the next box, or to the first; not twice, if another tab was quicker. */
  function answer(id, knew) {
    const [box, day, count] = cards()[id] ?? [0, 0, 0];
    if (!box || due([box, day]) <= today()) cards({ ...memory, [id]: [knew ? Math.min(box + 1, DAYS.length) : 1, today(), count + 1] });
    refresh();
  }

  const solved = (cell) => {
    const { text, passed } = read(`optdl:answer:${cell}`);
    return text !== undefined && text === passed || document.getElementById(`cell-${cell}`)?.matches(".exercise-passed");
  };

  // --- what is shown ---

  const pageOf = (address) => address.startsWith(BOOK) && address.slice(BOOK.length).split(".html")[0];
  const here = pageOf(location.href);
  let done;

  function refresh() {
    const all = cards();
    done = new Set(lessons.filter(([, [cells, ids]]) => ids.every((id) => all[id]) && cells.every(solved)).map(([page]) => page));
    for (const mark of document.querySelectorAll(".done-mark")) {
      const link = mark.closest("a") ?? mark.parentElement.querySelector("a");
      const box = link.hash.startsWith("#exercise-") && document.querySelector(link.hash);
      const is = box ? [...box.querySelectorAll(".exercise-answer")].every((cell) => solved(cell.id.slice(5))) : done.has(pageOf(link.href));
      mark.textContent = is ? "✓" : "";
      mark.role = is ? "img" : null;
      mark.ariaLabel = is ? "done" : null;
    }
    dispatchEvent(new Event("progress"));
  }

  /** Return the lesson to go on with, from the one that was open last. */
  function next() {
    const last = storage((kept) => kept.getItem(LAST));
    const way = lessons.filter(([page, [, , appendix]]) => page === last || !(appendix || done.has(page))).map(([page]) => page);
    return last && [...way.slice(Math.max(0, way.indexOf(last))), ...way].find((page) => !done.has(page));
  }

  // --- cards ---

  function element(tag, attributes, ...children) {
    const made = Object.assign(document.createElement(tag), attributes);
    made.append(...children);
    return made;
  }

  /** Give a card its two buttons, below the answer, and their keys while it has the focus. */
  function deal(card, act) {
    const texts = ["Knew it", "Did not"];
    card.append(element("div", { className: "card-answers" }, ...texts.map((text, k) => element("button", { onclick: () => act(!k) }, text))));
    card.onkeydown = ({ key, ctrlKey, altKey, metaKey }) => {
      if (card.open && (key === "1" || key === "2") && !ctrlKey && !altKey && !metaKey) act(key === "1");
    };
  }

  /** Say something below the cards, once also that the browser keeps nothing. */
  function say(line, text) {
    const first = Object.keys(memory).length && !say.said;
    say.said ||= first;
    line.textContent = text + (first ? " This browser keeps nothing: your answers to cards are forgotten when you leave the page." : "");
  }

  const holder = document.querySelector(".cards");
  if (holder) {
    const list = [...holder.querySelectorAll(".card")];
    const place = element("span");
    const line = element("p", { className: "card-said", role: "status", tabIndex: -1 });
    holder.firstElementChild.append(place);
    holder.append(line);
    const turn = () => {
      const all = cards();
      const now = list.findIndex((card) => !all[card.id.slice(5)]);
      list.forEach((card, k) => card.classList.toggle("card-now", k === now));
      holder.classList.toggle("cards-all", now < 0);
      place.textContent = now < 0 ? "" : ` · card ${now + 1} of ${list.length}`;
      return list[now];
    };
    for (const card of list)
      deal(card, (knew) => {
        card.open = false;
        answer(card.id.slice(5), knew);
        const next = turn();
        say(line, next ? "" : "All answered. The cards come back on the page My course.");
        (next?.firstElementChild ?? line).focus();
      });
    addEventListener("progress", turn);
  }

  // --- guesses: what was typed, chosen or drawn, beside the answer ---

  const guessed = {}; // guesses that the browser does not keep
  const keyOf = (field) => `optdl:${field.id.replace("-", ":")}`;

  function compare() {
    for (const field of document.querySelectorAll(".guess")) {
      const value = guessed[keyOf(field)] ?? storage((kept) => kept.getItem(keyOf(field))) ?? "";
      const line = document.getElementById(field.id.replace("guess", "truth"));
      const inputs = [...field.querySelectorAll("input")];
      const number = inputs[0].type === "number";
      for (const input of inputs) input.checked = input.value === value;
      if (field.dataset.figure) draw(field, line.lastChild, inputs, value && value.split(" "));
      else if (number && inputs[0] !== document.activeElement) inputs[0].value = value;
      const said = number ? inputs[0] : inputs.find((input) => input.checked);
      line.querySelector("strong")?.replaceChildren(number ? value : "", ...(said?.nextSibling.cloneNode(true).childNodes ?? []));
      line.hidden = !value;
    }
  }

  /** Draw a curve in its figure, at places and between heights that are told in percent. */
  function draw(field, frame, inputs, values) {
    const [low, high, bottom, top, ...places] = frame.textContent.replaceAll("−", "-").split(" ").map(Number);
    inputs.forEach((input, k) => Object.assign(input, { min: low, max: high, step: (high - low) / 100, value: values[k] ?? (low + high) / 2 }));
    const image = document.querySelector(`#${field.dataset.figure} img`);
    const box = image.closest(".guess-box") ?? element("span", { className: "guess-box" });
    if (!box.isConnected) image.replaceWith(box);
    box.prepend(image);
    document.getElementById(`drawn-${field.id}`)?.remove();
    if (!values) return;
    const points = values.map((value, k) => `${places[k]} ${100 - bottom - ((top - bottom) * (value - low)) / (high - low)}`);
    const dots = points.map((point) => `M${point}h0`).join("");
    const [x, y] = points.at(-1).split(" ");
    const label = field.querySelector("legend").textContent.replace(" for", ":");
    box.insertAdjacentHTML("beforeend", `<span id="drawn-${field.id}"><svg viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true"><path d="M${points.join("L")}"/><path d="${dots}"/></svg><small style="right: ${100 - x}%; top: ${y}%">${label}</small></span>`);
  }
  addEventListener("progress", compare);
  document.addEventListener("input", ({ target }) => {
    if (target.matches(".guess [type=range]")) target.closest(".guess").lastChild.textContent = `${target.nextSibling.textContent}: ${Number(target.value).toPrecision(2)}`;
  });
  document.addEventListener("change", ({ target }) => {
    const field = target.closest(".guess");
    if (!field) return;
    const value = field.dataset.figure ? [...field.querySelectorAll("input")].map((input) => Number(input.value).toPrecision(3)).join(" ") : target.value;
    const unread = target.validity.badInput ? "This is not a number: type one such as 0.5 or 2e-6." : "";
    const kept = storage((all) => (all.setItem(keyOf(field), value), true));
    if (!kept) guessed[keyOf(field)] = value;
    compare();
    field.lastChild.textContent = value ? `Kept for the answer.${kept ? "" : " It is forgotten when you leave the page."}` : unread;
  });
  // a decimal comma becomes a point; some browsers would drop it, and take 0,5 for 5
  document.addEventListener("beforeinput", (event) => {
    if (!event.data?.includes(",") || !event.target.matches(".guess [type=number]")) return;
    event.preventDefault();
    document.execCommand("insertText", false, event.data.replaceAll(",", "."));
  });

  window.PROGRESS = { cards, answer, deal, due, element, isDone: (page) => done.has(page), isCard, next, read, refresh, say, solved, storage, today };
  if (window.LESSONS[here]) storage((kept) => kept.setItem(LAST, here));
  refresh();
  addEventListener("storage", ({ key }) => key?.startsWith("optdl:") === false || refresh());
  // an exercise of this page is solved when its class says so
  const exercises = new MutationObserver(refresh);
  for (const cell of document.querySelectorAll(".exercise-answer")) exercises.observe(cell, { attributeFilter: ["class"] });
})();
