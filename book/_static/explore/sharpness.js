/* The largest eigenvalue of the Hessian along gradient descent, against the threshold 2/η, on
   J(a, b) = ¼(1 − a²b²)²: four linear layers in a row, of which two share the weight a and two b. */
(function () {
  "use strict";
  const { number, times, descend } = Explore;
  const STEPS = 400;
  const RATES = { min: 0.05, max: 0.35, step: 0.01 };

  // --- the mathematics ---

  const loss = ([a, b]) => (1 - a * a * b * b) ** 2 / 4;
  const gradient = ([a, b]) => [-(1 - a * a * b * b) * a * b * b, -(1 - a * a * b * b) * a * a * b];

  /** The largest eigenvalue of the Hessian; on the minima ab = ±1 it is 2(a² + b²). */
  function sharpness([a, b]) {
    const r = 1 - a * a * b * b;
    const [p, q, mixed] = [2 * a * a * b ** 4 - r * b * b, 2 * a ** 4 * b * b - r * a * a, 2 * (a * b) ** 3 - 2 * r * a * b];
    return (p + q) / 2 + Math.hypot((p - q) / 2, mixed);
  }

  const run = (start, lr) => descend(gradient, start, lr, STEPS, { far: 10 });

  function describe(values, path, lr) {
    const limit = 2 / lr;
    if (path.length <= STEPS) return `The iteration diverges after ${times(path.length - 1, "step")}. Take a smaller learning rate, or a start closer to the minima.`;
    const last = values.at(-1), first = values.findIndex((v) => v > limit), above = values.filter((v) => v > limit).length;
    const end = `After ${STEPS} steps λmax is ${number(last, 2)}, and 2/η is ${number(limit, 2)}`;
    if (first < 0) return `${end}: λmax has stayed below the threshold in every step.`;
    if (loss(path.at(-1)) > 1e-4) return `${end}; λmax was above the threshold in ${times(above, "step")}, and the loss has not reached 0.`;
    const moved = above > 5 ? " There the iterates oscillate across the valley and move along it, to minima with a smaller λmax." : "";
    return `${end}. λmax exceeded the threshold at step ${first} and in ${above - 1} later steps.${moved}`;
  }

  // --- the figure ---

  Explore.figure("sharpness", (fig) => {
    const { state } = fig;
    Object.assign(state, { start: [2.1, 0.02] });
    fig.slider({ id: "lr", label: "Learning rate η", ...RATES, value: 0.2 });
    fig.slider({ id: "step", label: "Steps shown", min: 0, max: STEPS, step: 1, value: STEPS, format: (v) => String(v) });
    const path = () => run(state.start, state.lr);
    const plane = fig.plot({
      title: "The run: drag the start", height: 330, x: { min: 0, max: 2.8, label: "a" }, y: { min: 0, max: 2.4, label: "b" },
      alt: () => `Level curves of the loss with a curve of minima, of which those with λmax below ${number(2 / state.lr, 1)} are drawn solid, and the run of gradient descent.`,
    });
    plane.handle({
      label: "Start of the run", series: 1, pick: true, step: [0.02, 0.02], get: () => state.start,
      set: (a, b) => { state.start = [a, b]; }, describe: (a, b) => `a ${number(a, 2)}, b ${number(b, 2)}`,
    });
    const column = fig.column();
    const chart = fig.plot({
      title: "Largest eigenvalue by step", height: 190, into: column, x: { min: 0, max: STEPS }, y: { min: 0, max: 20, label: "λmax" },
      alt: () => `Largest eigenvalue by step, and the threshold at ${number(2 / state.lr, 2)}. It ends at ${number(sharpness(path().at(-1)), 2)}.`,
    });
    const losses = fig.plot({
      title: "Loss by step", height: 160, into: column, x: { min: 0, max: STEPS, label: "step" }, y: { min: 1e-8, max: 10, log: true, label: "J" },
      alt: () => `Loss by step on a logarithmic axis; it ends at ${number(loss(path().at(-1)), 3)}.`,
    });
    fig.legend([[1, "gradient descent"], [3, "minima, λmax < 2/η"], [4, "other minima, and 2/η", "dashed"]]);

    fig.draw(({ lr, step }) => {
      const all = path(), seen = all.slice(0, step + 1), values = all.map(sharpness), limit = 2 / lr;
      const floor = Array.from({ length: 161 }, (_, k) => 2.8 ** (k / 80 - 1)).map((a) => [a, 1 / a]);
      const stable = (p) => sharpness(p) < limit;
      plane.contours((a, b) => loss([a, b]), [0.02, 0.1, 0.24, 0.5, 1.5, 5]);
      plane.curve(floor, { series: 4, dash: true });
      plane.curve(floor.filter(stable), { series: 3, width: 4 });
      plane.curve(seen, { series: 1, width: 1.2 });
      plane.dots(seen.slice(-1), { series: 1, radius: 5, shape: "square" });
      chart.axes(chart.xAxis, { ...chart.yAxis, max: Math.min(40, Math.max(1.5 * limit, 1.1 * Math.max(...values))) });
      chart.curve([[0, limit], [STEPS, limit]], { series: 4, dash: true });
      chart.text([STEPS, limit], "2/η", { series: 4, bold: true, anchor: "end", dy: -6 });
      chart.curve(seen.map((p, k) => [k, values[k]]), { series: 1 });
      losses.curve(seen.map((p, k) => [k, Math.max(loss(p), 1e-9)]), { series: 1 });
      const settled = all.length > STEPS && loss(all.at(-1)) < 1e-4;
      const reached = fig.task === "flattest"
        ? values.at(-1) < 4.1 && "Task solved: no minimum has a smaller λmax than 4, and this one has nearly that."
        : Math.abs(values.at(-1) / limit - 1) < 0.02 && "Task solved: the run ends within 2 % of the threshold.";
      fig.say(describe(values, all, lr), settled && reached);
    });
    fig.expose({ path, sharpness });
  });
})();
