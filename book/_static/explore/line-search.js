/* Exact line search on ½(x² + by²): the path, the angle of consecutive gradients, and the fraction of
   the loss that each step leaves, against the bound ((1 − b)/(1 + b))². */
(function () {
  "use strict";
  const { number } = Explore;
  const STEPS = 12;

  // --- the mathematics ---

  const loss = ([x, y], b) => (x * x + b * y * y) / 2;
  const gradient = ([x, y], b) => [x, b * y];
  const bound = (b) => ((1 - b) / (1 + b)) ** 2;

  /** The iterates, the start first; each step goes to the lowest point along the gradient. */
  function search(start, b) {
    const path = [start];
    for (let k = 0; k < STEPS; k += 1) {
      const [x, y] = path[k], [g, h] = gradient(path[k], b);
      const curvature = g * g + b * h * h;
      const lr = curvature > 0 ? (g * g + h * h) / curvature : 0;
      path.push([x - lr * g, y - lr * h]);
    }
    return path;
  }

  /** The part of the loss that the first step leaves. */
  const fraction = (start, b) => loss(search(start, b)[1], b) / loss(start, b) || 0;

  /** The angle in degrees between the gradients at two points. */
  function angle(p, q, b) {
    const [g, h] = [gradient(p, b), gradient(q, b)];
    const cosine = (g[0] * h[0] + g[1] * h[1]) / (Math.hypot(...g) * Math.hypot(...h));
    return (Math.acos(Explore.clamp(cosine, -1, 1)) * 180) / Math.PI;
  }

  // --- the figure ---

  Explore.figure("line-search", (fig) => {
    const { state } = fig;
    Object.assign(state, { start: [0.5, 0.8] });
    fig.slider({ id: "b", label: "Curvature b along y", min: 0.05, max: 1, step: 0.01, value: 0.2 });
    const path = () => search(state.start, state.b);
    const plane = fig.plot({
      title: "The path: drag the start", height: 331, x: { min: -0.75, max: 0.75, label: "x" }, y: { min: -0.4, max: 1, label: "y" },
      alt: () => `Level curves of a valley with b = ${number(state.b, 2)}, and the path of an exact line search, which turns by a right angle in each step.`,
    });
    plane.handle({
      label: "Start of the line search", series: 1, pick: true, step: [0.01, 0.01], get: () => state.start,
      set: (x, y) => { state.start = [x, y]; }, describe: (x, y) => `x ${number(x, 2)}, y ${number(y, 2)}`,
    });
    const chart = fig.plot({
      title: "Loss by step", height: 331, x: { min: 0, max: STEPS, label: "step" }, y: { min: 1e-8, max: 1, log: true, label: "J / J at the start" },
      alt: () => `Loss by step on a logarithmic axis, above zero and below the line of the worst start, which keeps ${number(bound(state.b))} of the loss in each step.`,
    });
    fig.legend([[1, "this start", "circle"], [2, "worst start, (1 − b)²/(1 + b)² in each step", "dashed"]]);

    fig.draw(({ start, b }) => {
      const all = path(), first = loss(start, b), left = fraction(start, b), worst = bound(b);
      plane.contours((x, y) => loss([x, y], b), Array.from({ length: 9 }, (_, k) => 0.5 * (0.11 * (k + 1)) ** 2), 70);
      plane.contours((x, y) => loss([x, y], b), [loss(all[1], b)]).style.strokeOpacity = 1;
      plane.curve(all, { series: 1 });
      plane.dots(all.slice(1), { series: 1 });
      chart.curve((k) => worst ** k, { series: 2, dash: true });
      chart.dots(all.map((p, k) => [k, loss(p, b) / first]).filter(([, v]) => v > 1e-8), { series: 1 });
      if (!(first > 0)) return fig.say("The start is the minimum: there is nothing to search for. Drag it away.");
      if (left < 1e-6) return fig.say(b === 1 ? "With b = 1 the level curves are circles: every gradient points through the minimum, and one step finishes." : "On this axis the gradient points through the minimum, and one step finishes.");
      const words = `The first step leaves a fraction of ${number(left)} of the loss, the second ${number(loss(all[2], b) / loss(all[1], b))}; from the worst start each step leaves ${number(worst)}. `
        + `Consecutive gradients are at ${number(angle(start, all[1], b), 0)}°, because a step ends where its line touches a level curve.`;
      fig.say(words, left > 0.99 * worst && b <= 0.5 && "Task solved: this is a worst start.");
    });
    fig.expose({ path, fraction: () => fraction(state.start, state.b), angle });
  });
})();
