/* The key P and the button of a lesson, which show it as slides. The slides themselves are loaded when
   somebody asks for them, or when the address names one. */
(() => {
  "use strict";
  const here = document.currentScript.src;
  const { dataset } = document.documentElement;
  let asked;

  // Whoever speaks to the computer may have switched off the keys that are letters.
  try {
    dataset.letterKeys = localStorage.getItem("letter-keys") ?? "on";
  } catch {
    // storage is blocked
  }

  function show(act) {
    if (window.slides) return window.slides[act]();
    if (asked) return;
    asked = true;
    const script = document.createElement("script");
    script.src = new URL("slides.js", here);
    document.head.append(script);
  }
  const follow = () => (window.slides || location.hash.startsWith("#slide=")) && show("follow");

  const button = document.querySelector(".slides-button");
  button.hidden = false;
  button.addEventListener("click", () => show("toggle"));
  addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "p" || dataset.letterKeys === "off" || event.ctrlKey || event.metaKey || event.altKey) return;
    show("toggle");
  });
  addEventListener("hashchange", follow);
  follow();
})();
