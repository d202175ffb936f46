/* Gradient descent at the cliff of a recurrent unit, J(w, b) = (h₅₀ − 0.7)² with h ← φ(wh + b) from 0.5,
   without clipping and with clipping by norm. */
(function () {
  "use strict";
  const { number, clamp } = Explore;
  const STEPS = 60;
  const W = { min: 3.9, max: 6.3, label: "w" }, B = { min: -3.4, max: -1.2, label: "b" };
  const C = { min: 0.05, max: 200 };

  // --- the mathematics ---

  /** J and its gradient, by the chain rule through 50 steps. */
  function loss([w, b]) {
    let h = 0.5, hw = 0, hb = 0;
    for (let j = 0; j < 50; j += 1) {
      const next = 1 / (1 + Math.exp(-(w * h + b))), slope = next * (1 - next);
      [h, hw, hb] = [next, slope * (h + w * hw), slope * (1 + w * hb)];
    }
    return { J: (h - 0.7) ** 2, g: [2 * (h - 0.7) * hw, 2 * (h - 0.7) * hb] };
  }

  const inside = ([w, b]) => w >= W.min && w <= W.max && b >= B.min && b <= B.max;

  /** The iterates and the norms of their gradients; c = ∞ clips nothing. */
  function run(start, lr, c) {
    const path = [start], norms = [];
    for (let k = 0; k <= STEPS; k += 1) {
      const { g } = loss(path[k]), norm = Math.hypot(...g);
      norms.push(norm);
      if (k < STEPS) path.push(path[k].map((v, i) => v - lr * g[i] * (norm > c ? c / norm : 1)));
    }
    const steps = path.slice(1).map((p, k) => Math.hypot(p[0] - path[k][0], p[1] - path[k][1]));
    return { path, norms, longest: Math.max(...steps), left: path.findIndex((p) => !inside(p)) };
  }

  /** The largest threshold of the slider with which the path stays in the picture; 0 without one. */
  function largest(start, lr) {
    for (let k = 200; k >= 0; k -= 1) {
      const c = C.min * (C.max / C.min) ** (k / 200);
      if (run(start, lr, c).left < 0) return c;
    }
    return 0;
  }

  // --- the figure ---

  Explore.figure("clipping", (fig) => {
    const { state } = fig;
    const shades = new Map();
    const shade = (w, b) => { // J does not change: it is computed once for each pixel
      const key = `${w} ${b}`;
      if (!shades.has(key)) shades.set(key, clamp(loss([w, b]).J, 0, 0.5));
      return shades.get(key);
    };
    Object.assign(state, { start: [5, -2.2] });
    fig.slider({ id: "c", label: "Threshold c", ...C, value: 20, log: true, format: (v) => number(v, 2) });
    fig.slider({ id: "lr", label: "Learning rate η", min: 0.05, max: 1, step: 0.05, value: 0.3 });
    const clipped = () => run(state.start, state.lr, state.c), free = () => run(state.start, state.lr, Infinity);
    const plane = fig.plot({
      title: "The cliff: drag the start", height: 330, x: W, y: B,
      alt: () => `The loss as a shaded plane with a cliff from the upper left to the lower right. Without clipping the longest step is ${number(free().longest, 1)}, with clipping ${number(clipped().longest, 2)}.`,
    });
    plane.handle({
      label: "Start of gradient descent", pick: true, step: [0.02, 0.02], get: () => state.start,
      set: (w, b) => { state.start = [w, b]; }, describe: (w, b) => `w ${number(w, 2)}, b ${number(b, 2)}`,
    });
    const chart = fig.plot({
      title: "Norm of the gradient by step: drag c", height: 330, x: { min: 0, max: STEPS, label: "step" }, y: { min: 1e-3, max: 1e4, log: true, label: "‖g‖" },
      alt: () => `Norms of the gradients of both runs on a logarithmic axis, and the threshold at ${number(state.c, 2)}.`,
    });
    chart.handle({
      label: "Threshold", move: "y", series: 3, step: [1, 1.05], get: () => [STEPS, state.c],
      set: (_, c) => fig.assign({ c: clamp(c, C.min, C.max) }), describe: (_, c) => number(c, 2),
    });
    fig.legend([[2, "without clipping", "dashed"], [1, "clipped by norm"], [3, "threshold c"]]);

    fig.draw(({ start, lr, c }) => {
      const plain = free(), kept = clipped();
      plane.heat((w, b) => 1.2 * shade(w, b), { series: 7, n: 72 });
      plane.curve(plain.path, { series: 2, width: 1.5, dash: true });
      plane.dots(plain.path.slice(1), { series: 2, radius: 2.8, shape: "diamond" });
      plane.curve(kept.path, { series: 1, width: 1.5 });
      plane.dots(kept.path.slice(1), { series: 1, radius: 2.4 });
      chart.curve(plain.norms.map((v, k) => [k, v]), { series: 2, dash: true });
      chart.curve(kept.norms.map((v, k) => [k, v]), { series: 1 });
      chart.curve([[0, c], [STEPS, c]], { series: 3, width: 2.5 });
      const end = ({ left, path }) => (left < 0 ? `after ${STEPS} steps the loss is ${number(loss(path.at(-1)).J)}` : `the path leaves the picture at step ${left}`);
      fig.say(`Without clipping the longest step is ${number(plain.longest, 2)}, and ${end(plain)}. With c = ${number(c, 2)} the longest step is ${number(kept.longest, 2)}, at most ηc = ${number(lr * c, 2)}, and ${end(kept)}.`,
        plain.left >= 0 && kept.left < 0 && Math.abs(c / largest(start, lr) - 1) < 0.03 && "Task solved: a larger threshold leads out of the picture.");
    });
    fig.expose({ loss, free, clipped, largest: () => largest(state.start, state.lr) });
  });
})();
