/* All optimizers on the classic surfaces. The paths and the level curves are computed by the
   package when the book is built, and stand in the page as JSON; nothing is computed here.
   A classic script without dependencies, so that the page also works from a file. */
(function () {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const SIZE = { width: 360, height: 270 };

  function draw(tag, attributes, parent, text) {
    const node = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    if (text !== undefined) node.textContent = text;
    parent.append(node);
    return node;
  }

  function element(tag, attributes, parent, text) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    if (text !== undefined) node.textContent = text;
    parent.append(node);
    return node;
  }

  const number = (x) => (x === null ? "left" : Math.abs(x) < 1e-3 && x !== 0 ? x.toExponential(0) : x.toFixed(3)).replace("-", "−");

  function build(root, surfaces) {
    root.replaceChildren();
    const controls = element("div", { class: "race-controls" }, root);
    const label = element("label", { for: "race-surface" }, controls, "Surface");
    const choice = element("select", { id: "race-surface" }, label);
    Object.keys(surfaces).forEach((name) => element("option", { value: name }, choice, name));
    const stepLabel = element("label", { for: "race-step" }, controls, "Step ");
    const stepText = element("output", { for: "race-step" }, stepLabel);
    const slider = element("input", { id: "race-step", type: "range", min: 0, step: 1 }, stepLabel);
    const play = element("button", { type: "button" }, controls, "Play");
    const svg = draw("svg", { viewBox: `0 0 ${SIZE.width} ${SIZE.height}`, role: "img", "aria-label": "Paths of the optimizers on the chosen surface" }, root);
    const table = element("table", { class: "race-table" }, root);
    element("caption", {}, table, "Loss at this step");
    const body = element("tbody", {}, table);
    let timer = null;

    function stop() {
      clearInterval(timer);
      timer = null;
      play.textContent = "Play";
    }

    function show() {
      const surface = surfaces[choice.value];
      const [left, right, bottom, top] = surface.window;
      const x = (value) => ((value - left) / (right - left)) * SIZE.width;
      const y = (value) => SIZE.height - ((value - bottom) / (top - bottom)) * SIZE.height;
      const points = (path) => path.map(([a, b]) => `${x(a).toFixed(1)},${y(b).toFixed(1)}`).join(" ");
      const step = Number(slider.value);
      stepText.textContent = `${step * surface.every}`;
      slider.setAttribute("aria-valuetext", `step ${step * surface.every}`);
      svg.replaceChildren();
      body.replaceChildren();
      surface.levels.forEach((line) => draw("polyline", { points: points(line), class: "race-level" }, svg));
      if (surface.minimum) draw("text", { x: x(surface.minimum[0]), y: y(surface.minimum[1]) + 5, class: "race-star" }, svg, "★");
      surface.paths.forEach((one, index) => {
        const seen = one.path.slice(0, step + 1);
        draw("polyline", { points: points(seen), class: `race-path race-${index}` }, svg);
        const [a, b] = seen[seen.length - 1];
        draw("circle", { cx: x(a).toFixed(1), cy: y(b).toFixed(1), r: 4.5, class: `race-dot race-${index}` }, svg);
        const row = element("tr", {}, body);
        const head = element("th", { scope: "row" }, row);
        element("span", { class: `race-key race-${index}`, "aria-hidden": "true" }, head);
        head.append(one.name);
        element("td", {}, row, number(one.losses[Math.min(step, one.losses.length - 1)]));
      });
    }

    function choose() {
      stop();
      slider.max = Math.max(...surfaces[choice.value].paths.map((one) => one.path.length)) - 1;
      slider.value = slider.max;
      show();
    }

    choice.addEventListener("change", choose);
    slider.addEventListener("input", () => { stop(); show(); });
    play.addEventListener("click", () => {
      if (timer) { stop(); return; }
      if (Number(slider.value) === Number(slider.max)) slider.value = 0;
      play.textContent = "Pause";
      timer = setInterval(() => {
        slider.value = Number(slider.value) + 1;
        show();
        if (Number(slider.value) >= Number(slider.max)) stop();
      }, 60);
    });
    choose();
  }

  function start() {
    const root = document.getElementById("optimizers-race");
    const data = document.getElementById("optimizers-race-data");
    if (root && data) build(root, JSON.parse(data.textContent));
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
