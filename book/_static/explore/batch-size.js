/* Minibatch gradients as a cloud around the gradient g, and what a step with the mean of n of them
   achieves: the fraction n/(n + n_c) of the progress of the exact gradient, with n_c = σ²/‖g‖². */
(function () {
  "use strict";
  const { number, random } = Explore;
  const DRAWS = 300;
  const LARGEST = 1e4;

  // --- the mathematics, in units of ‖g‖, for a loss of the same curvature in all directions ---

  const progress = (n, scale) => n / (n + scale);
  const perExample = (n, scale) => scale / (n + scale);

  /** The first DRAWS gradients of minibatches of n; their mean squared distance from g is σ²/n. */
  function minibatches(n, scale) {
    const draw = random(5), spread = Math.sqrt(scale / n / 2);
    return Array.from({ length: DRAWS }, () => [1 + spread * draw.normal(), spread * draw.normal()]);
  }

  /** The same fraction, measured: with the best rate a step makes (E gᵀĝ)² / (‖g‖² E‖ĝ‖²) of the progress. */
  function measured(n, scale) {
    const all = minibatches(n, scale), mean = (f) => all.reduce((sum, v) => sum + f(v), 0) / DRAWS;
    return mean(([a]) => a) ** 2 / mean(([a, b]) => a * a + b * b);
  }

  // --- the figure ---

  Explore.figure("batch-size", (fig) => {
    const { state } = fig;
    const size = (v) => Math.max(1, Math.round(v));
    const say = (v) => String(size(v));
    fig.slider({ id: "n", label: "Minibatch size n", min: 1, max: LARGEST, value: 32, log: true, format: say });
    fig.slider({ id: "scale", label: "Noise scale", min: 10, max: 1000, value: 300, log: true, format: say });
    const values = () => [size(state.n), size(state.scale)];
    const cloud = fig.plot({
      title: `${DRAWS} minibatch gradients`, height: 300, x: { min: -3, max: 5, label: "along g, in units of ‖g‖" }, y: { min: -3.75, max: 3.75, label: "across g" },
      alt: () => `A cloud of minibatch gradients around the tip of g, with a root mean square distance of ${number(Math.sqrt(values()[1] / values()[0]), 2)} times the length of g.`,
    });
    const chart = fig.plot({
      title: "Progress: drag n", height: 300, x: { min: 1, max: LARGEST, log: true, label: "n" }, y: { min: 0, max: 1, label: "fraction" },
      alt: () => `Two curves that cross at the noise scale: progress of a step rises with n, and progress per example falls.`,
    });
    chart.handle({
      label: "Minibatch size on the curve", move: "x", series: 1, step: [1.05], get: () => [state.n, progress(...values())],
      set: (n) => fig.assign({ n }), describe: () => `n ${values()[0]}, ${number(100 * progress(...values()), 1)} percent of the full progress`,
    });
    fig.legend([[1, "progress of a step"], [1, "measured", "circle"], [2, "progress per example", "dashed"], [3, "standard error σ/√n"]]);

    fig.draw(() => {
      const [n, scale] = values(), done = progress(n, scale), noise = Math.sqrt(scale / n);
      cloud.guide(0, 0);
      cloud.dots(minibatches(n, scale), { series: 1, radius: 1.6 });
      cloud.curve(Array.from({ length: 73 }, (_, k) => [1 + noise * Math.cos((k * Math.PI) / 36), noise * Math.sin((k * Math.PI) / 36)]), { series: 3, width: 2.5 });
      cloud.curve([[0, 0], [1, 0]], { width: 3.5 });
      cloud.dots([[1, 0]], { radius: 4.5, shape: "diamond" });
      cloud.text([1, 0], "g", { bold: true, dx: 8, dy: 16 });
      chart.guide(scale);
      chart.text([scale, 0], "noise scale", { dx: 5, dy: -8 });
      chart.curve((v) => progress(v, scale), { series: 1 });
      chart.curve((v) => perExample(v, scale), { series: 2, dash: true });
      chart.dots(Array.from({ length: 9 }, (_, k) => Math.sqrt(10) ** k).map((v) => [v, measured(v, scale)]), { series: 1, radius: 3.5 });
      const more = progress(2 * n, scale) / done;
      const reached = {
        error: noise <= 0.5 && noise > 0.485 && "Task solved: the standard error is half as long as g.",
        norm: n === 10 && Math.abs(done - 0.2) < 0.005 && "Task solved: ‖g‖² is a fifth of the mean ‖g_B‖².",
      }[fig.task] ?? (Math.abs(done - 0.8) < 0.005 && `Task solved: 80 % of the full progress, with n at ${number(n / scale, 1)} times the noise scale.`);
      fig.say(`With n = ${n} a step makes ${number(100 * done, 1)} % of the progress of the exact gradient, and the noise is ${number(noise, 2)} times as long as g. `
        + `Twice the minibatch would make ${number(more, 2)} times the progress, at twice the cost.`, reached);
    });
    fig.expose({ progress, measured, minibatches });
  });
})();
