/* Gradient descent on the bowl ½(λ_flat a² + λ_steep s²), with λ_steep = 1 and λ_flat = 1/κ.
   The dots come from running the iteration, the curves from the closed form (1 − ηλ)^τ.
   A classic script without dependencies, so that the page also works from a file. */
(function () {
  "use strict";

  const STEPS = 40;
  const START = { flat: 1.2, steep: 0.85 };
  const SVG = "http://www.w3.org/2000/svg";

  // --- the mathematics ---

  const rate = (lr, lambda) => Math.max(Math.abs(1 - lr * lambda.flat), Math.abs(1 - lr * lambda.steep));

  const spectrum = (kappa) => ({ flat: 1 / kappa, steep: 1 });

  const bestStep = (lambda) => 2 / (lambda.flat + lambda.steep);

  function descend(lr, lambda, steps) {
    const path = [{ ...START }];
    for (let t = 0; t < steps; t += 1) {
      const { flat, steep } = path[t];
      path.push({ flat: flat - lr * lambda.flat * flat, steep: steep - lr * lambda.steep * steep });
    }
    return path;
  }

  function describe(lr, lambda) {
    const r = rate(lr, lambda);
    const factor = 1 - lr * lambda.steep;
    const best = bestStep(lambda);
    const digit = Math.ceil(Math.log(10) / -Math.log(r) - 1e-9);
    const pace = r < 1e-3 ? "One step is enough." : `One more correct digit takes ${digit} step${digit === 1 ? "" : "s"}.`;
    if (r > 1 + 1e-9) return `Diverges: the steep coefficient is multiplied by ${signed(factor)} at each step. Stay below 2/λmax = 2.`;
    if (r > 1 - 1e-9) return "On the limit: the steep coefficient flips its sign forever and never shrinks.";
    const ruler = lambda.flat === lambda.steep ? "Both directions are alike."
      : Math.abs(lr - best) < 0.006 ? "Both ends of the spectrum are equally slow: this is the best step."
      : lr < best ? "The flat direction is the slow one." : "The steep direction is the slow one.";
    const manner = factor < -1e-9 ? "Converges, and the steep coefficient changes sign at each step." : "Converges without overshooting.";
    return `${manner} ${ruler} Rate ${r.toFixed(3)}. ${pace}`;
  }

  const signed = (x) => x.toFixed(2).replace("-", "−");

  // --- drawing ---

  function draw(tag, attributes, parent, text) {
    const node = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    if (text !== undefined) node.textContent = text;
    parent.append(node);
    return node;
  }

  const clamp = (x, low, high) => Math.min(high, Math.max(low, x));
  const polyline = (points) => points.map(([x, y]) => `${clamp(x, -1e4, 1e4).toFixed(1)},${clamp(y, -1e4, 1e4).toFixed(1)}`).join(" ");

  /** Linear axes of a small chart: from data to pixels of its view box. */
  function axes(xMax, yMin, yMax) {
    const box = { left: 34, right: 330, top: 10, bottom: 158 };
    return {
      box,
      x: (v) => box.left + (v / xMax) * (box.right - box.left),
      y: (v) => box.bottom - ((v - yMin) / (yMax - yMin)) * (box.bottom - box.top),
    };
  }

  function frame(svg, scale, xTicks, yTicks, xLabel) {
    const { box } = scale;
    draw("line", { class: "qx-axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }, svg);
    draw("line", { class: "qx-axis", x1: box.left, x2: box.left, y1: box.top, y2: box.bottom }, svg);
    for (const v of xTicks) draw("text", { x: scale.x(v), y: box.bottom + 15, "text-anchor": "middle" }, svg, String(v));
    for (const v of yTicks) draw("text", { x: box.left - 6, y: scale.y(v) + 4, "text-anchor": "end" }, svg, String(v).replace("-", "−"));
    draw("text", { x: box.right, y: box.bottom + 30, "text-anchor": "end" }, svg, xLabel);
  }

  function drawBowl(svg, state) {
    svg.replaceChildren();
    const { lambda, path } = state;
    const plane = draw("g", { transform: "translate(170 165) rotate(-28)" }, svg);
    const unit = 108;
    for (let k = 1; k <= 10; k += 1) {
      const ry = 0.14 * k * unit;
      draw("ellipse", { class: "qx-level", rx: ry * Math.sqrt(lambda.steep / lambda.flat), ry }, plane);
    }
    draw("line", { class: "qx-flat", "stroke-opacity": 0.55, x1: -170, x2: 165, y1: 0, y2: 0 }, plane);
    draw("line", { class: "qx-steep", "stroke-opacity": 0.55, x1: 0, x2: 0, y1: -140, y2: 150 }, plane);
    draw("text", { class: "qx-flat-label", x: 318, y: 66, "text-anchor": "end" }, svg, "flat");
    draw("text", { class: "qx-steep-label", x: 118, y: 32, "text-anchor": "end" }, svg, "steep");
    const shown = path.slice(0, state.steps + 1).map((p) => [p.flat * unit, -p.steep * unit]);
    draw("polyline", { class: "qx-path", points: polyline(shown) }, plane);
    for (const [x, y] of shown) {
      if (Math.abs(x) < 400 && Math.abs(y) < 400) draw("circle", { class: "qx-point", cx: x, cy: y, r: 2.8 }, plane);
    }
    draw("circle", { class: "qx-path", cx: shown[0][0], cy: shown[0][1], r: 6 }, plane);
  }

  function drawCoefficients(svg, state) {
    svg.replaceChildren();
    const scale = axes(STEPS, -1.25, 1.25);
    const { lambda, lr, path } = state;
    draw("line", { class: "qx-guide", x1: scale.box.left, x2: scale.box.right, y1: scale.y(0), y2: scale.y(0) }, svg);
    frame(svg, scale, [0, 10, 20, 30, 40], [-1, 0, 1], "step τ");
    const clip = (v) => clamp(v, -1.25, 1.25);
    for (const name of ["flat", "steep"]) {
      const curve = path.map((_, t) => [scale.x(t), scale.y(clip((1 - lr * lambda[name]) ** t))]);
      draw("polyline", { class: `qx-${name}`, points: polyline(curve) }, svg);
      path.slice(0, state.steps + 1).forEach((p, t) => {
        const v = p[name] / START[name];
        if (Math.abs(v) > 1.25) return;
        const [x, y] = [scale.x(t), scale.y(v)];
        if (name === "flat") draw("circle", { class: "qx-flat-dot", cx: x, cy: y, r: 2.8 }, svg);
        else draw("rect", { class: "qx-steep-dot", x: x - 2.5, y: y - 2.5, width: 5, height: 5 }, svg);
      });
    }
    draw("text", { class: "qx-flat-label", x: 258, y: 24, "text-anchor": "end" }, svg, "● flat");
    draw("text", { class: "qx-steep-label", x: 328, y: 24, "text-anchor": "end" }, svg, "■ steep");
  }

  function drawRate(svg, state) {
    svg.replaceChildren();
    const scale = axes(2.2, 0, 1.3);
    const { lambda, lr } = state;
    const { box } = scale;
    draw("rect", { class: "qx-danger", x: box.left, y: box.top, width: box.right - box.left, height: scale.y(1) - box.top }, svg);
    draw("text", { x: box.left + 6, y: box.top + 14 }, svg, "diverges");
    frame(svg, scale, [0, 0.5, 1, 1.5, 2], [0, 0.5, 1], "learning rate η");
    const grid = Array.from({ length: 221 }, (_, i) => i / 100);
    const line = (f) => polyline(grid.map((v) => [scale.x(v), scale.y(Math.min(1.3, f(v)))]));
    draw("polyline", { class: "qx-worst", points: line((v) => rate(v, lambda)) }, svg);
    draw("polyline", { class: "qx-flat", points: line((v) => Math.abs(1 - v * lambda.flat)) }, svg);
    draw("polyline", { class: "qx-steep", points: line((v) => Math.abs(1 - v * lambda.steep)) }, svg);
    draw("line", { class: "qx-guide", x1: scale.x(lr), x2: scale.x(lr), y1: box.top, y2: box.bottom }, svg);
    draw("circle", { class: "qx-point", cx: scale.x(lr), cy: scale.y(Math.min(1.3, rate(lr, lambda))), r: 5 }, svg);
  }

  // --- the page ---

  function make(tag, properties, ...children) {
    const node = Object.assign(document.createElement(tag), properties);
    node.append(...children);
    return node;
  }

  function slider(name, id, min, max, step, value) {
    const shown = make("span", { className: "qx-value" });
    const label = make("label", { htmlFor: id }, make("span", {}, name), shown);
    const input = make("input", { type: "range", id });
    Object.assign(input, { min, max, step });
    input.value = value;
    return { input, shown, row: make("div", {}, label, input) };
  }

  function panel(title, height) {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", `0 0 340 ${height}`);
    svg.setAttribute("role", "img");
    return { svg, node: make("div", {}, make("p", { className: "qx-title" }, title), svg) };
  }

  function build(root) {
    const kappa = slider("Condition number κ", "qx-kappa", 1, 50, 1, 10);
    const lr = slider("Learning rate η", "qx-lr", 0.02, 2.2, 0.01, 1.7);
    const steps = slider("Steps τ", "qx-steps", 0, STEPS, 1, STEPS);
    const best = make("button", { type: "button" }, "Take the best step");
    const play = make("button", { type: "button" }, "Play");
    const bowl = panel("The path on the bowl", 330);
    const coefficients = panel("What is left of each coefficient", 194);
    const rates = panel("Rate against learning rate", 194);
    const readout = make("output", { className: "qx-readout" });
    readout.setAttribute("aria-live", "polite");
    readout.style.display = "block";
    for (const control of [kappa, lr, steps]) readout.htmlFor.add(control.input.id);

    root.replaceChildren(
      make("div", { className: "qx-controls" }, kappa.row, lr.row, steps.row),
      make("div", { className: "qx-buttons" }, best, play),
      make("div", { className: "qx-panels" }, make("div", {}, bowl.node, readout), make("div", { className: "qx-side" }, coefficients.node, rates.node)),
    );

    let speaking;
    function update() {
      const lambda = spectrum(Number(kappa.input.value));
      const state = { lambda, lr: Number(lr.input.value), steps: Number(steps.input.value) };
      state.path = descend(state.lr, lambda, STEPS);
      kappa.shown.textContent = kappa.input.value;
      lr.shown.textContent = state.lr.toFixed(2);
      steps.shown.textContent = steps.input.value;
      drawBowl(bowl.svg, state);
      drawCoefficients(coefficients.svg, state);
      drawRate(rates.svg, state);
      const factors = `flat ${signed(1 - state.lr * lambda.flat)}, steep ${signed(1 - state.lr * lambda.steep)}`;
      bowl.svg.setAttribute("aria-label", `Level curves of a bowl with condition number ${kappa.input.value} and the path of ${state.steps} gradient steps.`);
      coefficients.svg.setAttribute("aria-label", `Coefficients by step; each step multiplies them by: ${factors}.`);
      rates.svg.setAttribute("aria-label", `Rate against learning rate; now ${rate(state.lr, lambda).toFixed(3)} at ${state.lr.toFixed(2)}, best at ${bestStep(lambda).toFixed(2)}.`);
      // a screen reader should hear the result of a drag, not each pixel of it
      clearTimeout(speaking);
      speaking = setTimeout(() => { readout.textContent = describe(state.lr, lambda); }, readout.textContent ? 150 : 0);
    }

    let timer;
    function stop() {
      clearInterval(timer);
      timer = undefined;
      play.textContent = "Play";
    }
    play.hidden = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    play.addEventListener("click", () => {
      if (timer) return stop();
      steps.input.value = 0;
      play.textContent = "Stop";
      timer = setInterval(() => {
        steps.input.value = Number(steps.input.value) + 1;
        update();
        if (Number(steps.input.value) >= STEPS) stop();
      }, 140);
      update();
    });
    best.addEventListener("click", () => {
      lr.input.value = bestStep(spectrum(Number(kappa.input.value)));
      update();
    });
    for (const control of [kappa, lr]) control.input.addEventListener("input", update);
    steps.input.addEventListener("input", () => { stop(); update(); });
    update();
  }

  function start() {
    const root = document.getElementById("quadratic-explorer");
    if (root) build(root);
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
