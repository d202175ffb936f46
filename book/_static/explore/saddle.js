/* A start near the stable manifold a = −b of the saddle of J = ½(ab − 1)²: the path, the distances by
   step, and the steps until it has left, beside the formula ln(1/d) / ln(1 + η) of the quadratic model. */
(function () {
  "use strict";
  const { number, times, descend } = Explore;
  const LIMIT = 1000;
  const STAY = 60; // steps that are shown of a start that never leaves
  const TARGET = 50;

  // --- the mathematics: u = (a + b)/√2 is the distance from the line, v = (a − b)/√2 runs along it ---

  const swap = ([a, b]) => [(a + b) / Math.SQRT2, (a - b) / Math.SQRT2]; // its own inverse

  /** The iterates until |u| ≥ 1. A start on the line stays on it. */
  function run(start, lr) {
    const exact = start[0] === 0; // in these coordinates nothing is rounded on the line
    const all = descend(([u, v]) => { const r = (u * u - v * v) / 2 - 1; return [r * u, -r * v]; }, start, lr, exact ? STAY : LIMIT);
    const out = all.findIndex(([u]) => Math.abs(u) >= 1);
    return out < 0 ? all : all.slice(0, out + 1);
  }

  /** Steps until |u| ≥ 1 where J is replaced by its quadratic model at the saddle. */
  const escape = (d, lr) => Math.max(0, Math.ceil(Math.log(1 / d) / Math.log(1 + lr) - 1e-12));

  // --- the figure ---

  Explore.figure("saddle", (fig) => {
    const { state } = fig;
    Object.assign(state, { along: 1.5, side: 1 });
    fig.slider({ id: "d", label: "Distance d from the line a = −b", min: 1e-9, max: 1, value: 0.02, log: true, format: (v) => number(v, 2) });
    fig.slider({ id: "lr", label: "Learning rate η", min: 0.05, max: 0.5, step: 0.05, value: 0.3 });
    fig.button("Start exactly on the line", () => { state.side = 0; });
    const start = () => [state.side * state.d, state.along];
    const path = () => run(start(), state.lr);
    const plane = fig.plot({
      title: "The path: drag the start", height: 338, x: { min: -2, max: 2, label: "a" }, y: { min: -2, max: 2, label: "b" },
      alt: () => `Level curves of the loss with a saddle at the origin and two curves of minima, and a path of ${path().length - 1} gradient steps.`,
    });
    plane.handle({
      label: "Start", series: 1, step: [0.05, 0.05], pick: true, get: () => swap(start()),
      set: (a, b) => {
        const [u, along] = swap([a, b]);
        if (Math.abs(u) < 0.015) Object.assign(state, { along, side: 0 }); // as near as a finger can tell
        else fig.assign({ along, side: Math.sign(u), d: Math.min(1, Math.abs(u)) });
      },
      describe: (a, b) => `a ${number(a, 2)}, b ${number(b, 2)}, distance from the line ${number(Math.abs(start()[0]), 2)}`,
    });
    const chart = fig.plot({
      title: "Distances by step", height: 338, x: { min: 0, max: 60, label: "step" }, y: { min: 0.01, max: 10, log: true, label: "distance" },
      alt: () => `Distances by step on a logarithmic axis: from the line it grows along a straight line, from the saddle it first shrinks and then grows.`,
    });
    fig.legend([[1, "distance from the line", "circle"], [2, "d (1 + η)ᵏ", "dashed"], [3, "distance from the saddle"]]);

    fig.draw(({ d, lr, side }, id) => {
      if (id === "d" && side === 0) side = state.side = 1;
      const all = path(), steps = all.length - 1, predicted = escape(d, lr);
      plane.contours((a, b) => (a * b - 1) ** 2 / 2, [0.02, 0.1, 0.25, 0.49, 0.52, 0.8, 1.4, 2.4, 4, 6]);
      for (const sign of [-1, 1]) plane.curve(Array.from({ length: 41 }, (_, k) => 4 ** (k / 20 - 1)).map((a) => [sign * a, sign / a]), { series: 3, width: 3 });
      plane.curve([[-2, 2], [2, -2]], { series: 2, dash: true });
      plane.curve(all.map(swap), { series: 1, width: 1.5 });
      plane.dots(all.map(swap), { series: 1, radius: 2.6 });
      plane.text([-1.95, 1.95], "a = −b", { series: 2, bold: true, dx: 30, dy: 12 });
      chart.axes({ ...chart.xAxis, max: Math.max(20, steps) }, { ...chart.yAxis, min: Math.min(0.01, d / 2) });
      chart.guide(null, 1);
      if (side) chart.curve((k) => d * (1 + lr) ** k, { series: 2, dash: true });
      chart.curve(all.map((p, k) => [k, Math.hypot(...p)]), { series: 3 });
      if (side) chart.dots(all.map(([u], k) => [k, Math.abs(u)]), { series: 1, radius: 2.4 });
      const settled = Math.hypot(...all.at(-1)) < 1;
      if (side === 0) return fig.say(`The start lies exactly on the line, so every step keeps a = −b. ${settled ? "The iterates converge to the saddle: the line is its stable manifold, a set of measure zero." : "So far away the iteration diverges along it."}`);
      if (steps >= LIMIT) return fig.say(`After ${LIMIT} steps the iterates have not left the saddle.`);
      const apart = steps === predicted ? "as the formula predicts" : `where the formula predicts ${predicted}`;
      fig.say(`From d = ${number(d, 2)} the iterates need ${times(steps, "step")} until the distance from the line is 1, ${apart}. A start ten times closer needs ${number(Math.log(10) / Math.log(1 + lr), 1)} more steps by the formula, and ${run([d / 10, state.along], lr).length - 1 - steps} in this run.`,
        steps === TARGET && `Task solved: ${TARGET} steps.`);
    });
    fig.expose({ path: () => path().map(swap), escape });
  });
})();
