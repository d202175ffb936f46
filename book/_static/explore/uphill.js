/* Along one step of gradient descent: J(θ − ηg) against η, with what g alone and what g and H predict.
   J(x, y) = ½(x² + κy²) + c(¼(x⁴ + y⁴) − x²) with κ = 5: a quadratic for c = 0, not convex for c > ½. */
(function () {
  "use strict";
  const { number } = Explore;

  // --- the mathematics ---

  const KAPPA = 5;
  const FAR = 20; // of the rates that are searched
  const value = ([x, y], c) => (x * x + KAPPA * y * y) / 2 + c * ((x ** 4 + y ** 4) / 4 - x * x);
  const gradient = ([x, y], c) => [x + c * (x ** 3 - 2 * x), KAPPA * y + c * y ** 3];
  const curvatures = ([x, y], c) => [1 + c * (3 * x * x - 2), KAPPA + 3 * c * y * y]; // H is diagonal
  const after = (p, c, lr) => p.map((v, i) => v - lr * gradient(p, c)[i]);

  /** What g and H say about a step from p: gᵀg, gᵀHg, the best rate and the uphill bound, infinite without one. */
  function model(p, c) {
    const g = gradient(p, c), h = curvatures(p, c);
    const slope = g[0] ** 2 + g[1] ** 2;
    const curvature = h[0] * g[0] ** 2 + h[1] * g[1] ** 2;
    const best = curvature > 0 ? slope / curvature : Infinity;
    return { slope, curvature, best, bound: 2 * best };
  }

  const linear = (p, c, lr) => value(p, c) - lr * model(p, c).slope;
  const quadratic = (p, c, lr) => linear(p, c, lr) + (lr * lr * model(p, c).curvature) / 2;
  const actual = (p, c, lr) => value(after(p, c, lr), c);

  /** The first rate at which the step goes uphill: a search in steps of 0.01, 0.005, …; infinite from 20 on. */
  function uphill(p, c) {
    let rate = 0;
    for (let step = 0.01; step > 1e-12; step /= 2) while (rate < FAR && actual(p, c, rate + step) < value(p, c)) rate += step;
    return rate < FAR ? rate : Infinity;
  }

  // --- the figure ---

  Explore.figure("uphill", (fig) => {
    const { state } = fig;
    const RATES = { min: 0, max: 2.2, label: "learning rate η", ticks: [0, 0.5, 1, 1.5, 2] };
    const p = () => [state.x, state.y];
    let top = 1;
    Object.assign(state, { x: 1.5, y: 0.4 });
    fig.slider({ id: "lr", label: "Learning rate η", min: 0, max: 2.2, step: 0.01, value: 0.3 });
    fig.slider({ id: "c", label: "Weight c of the part that is not convex", min: 0, max: 1, step: 0.05, value: 0.8 });
    fig.button("Take the best step", () => { const { best } = model(p(), state.c); if (best < Infinity) fig.assign({ lr: best }); });
    fig.button("Go on from there", () => Object.assign(state, { x: after(p(), state.c, state.lr)[0], y: after(p(), state.c, state.lr)[1] }));
    const plane = fig.plot({
      title: "The step on the level curves", height: 250, x: { min: -2, max: 2, label: "x" }, y: { min: -1.3, max: 1.3, label: "y" },
      alt: () => `Level curves of J, the point (${number(state.x, 2)}, ${number(state.y, 2)}) and its step against the gradient.`,
    });
    plane.handle({
      label: "Point θ", series: 1, step: [0.05, 0.05], pick: true, get: p, set: (x, y) => Object.assign(state, { x, y }),
      describe: (x, y) => `x ${number(x, 2)}, y ${number(y, 2)}`,
    });
    const chart = fig.plot({
      title: "J along the step", height: 250, x: RATES, y: { min: 0, max: 1, label: "J(θ − ηg)" },
      alt: () => `J against the learning rate with the line from g, the parabola from g and H, its lowest point and the uphill bound.`,
    });
    chart.handle({
      label: "Rate on the curve", move: "x", series: 1, step: [0.01, 1], get: () => [state.lr, Math.min(top, actual(p(), state.c, state.lr))],
      set: (lr) => fig.assign({ lr }), describe: (lr) => `η ${number(lr, 2)}, J ${number(actual(p(), state.c, lr))}`,
    });
    fig.legend([[1, "J itself", "line"], [3, "line from g", "dashed"], [2, "parabola from g and H", "dashed"], [2, "best step of the parabola", "diamond"], [4, "uphill bound 2gᵀg / gᵀHg", "cross"]]);

    fig.draw(({ lr, c }) => {
      const here = value(p(), c), next = actual(p(), c, lr), { slope, curvature, best, bound } = model(p(), c);
      const [end, lowest, edge] = [lr, best, bound].map((rate) => after(p(), c, Math.min(rate, 100)));
      const floor = c > 0.5 ? -((1 - 2 * c) ** 2) / (4 * c) : 0; // the lowest value of J
      top = Math.max(0.05, here + (here - floor));
      plane.contours((x, y) => value([x, y], c), [-0.2, -0.1, 0, 0.1, 0.3, 0.6, 1, 1.5, 2.2, 3, 4, 5]);
      plane.contours((x, y) => value([x, y], c), [here]).style.strokeOpacity = 1;
      chart.axes(RATES, { ...chart.yAxis, min: floor, max: top });
      chart.guide(null, here);
      chart.curve((rate) => actual(p(), c, rate), { series: 1, width: 3 });
      if (slope === 0) return fig.say("The gradient is zero here: no step moves the point, whatever the rate. Drag the point away from the minimum.");
      plane.curve([p(), end], { series: 1, width: 3 });
      plane.curve([p(), edge], { series: 1, width: 1, dash: "3 3" });
      plane.dots([end], { series: 1, shape: "square", radius: 4 });
      chart.curve((rate) => linear(p(), c, rate), { series: 3, dash: true });
      chart.curve((rate) => quadratic(p(), c, rate), { series: 2, dash: true });
      if (curvature > 0) for (const [plot, low, back] of [[plane, lowest, edge], [chart, [best, quadratic(p(), c, best)], [bound, here]]]) {
        plot.dots([low], { series: 2, shape: "diamond", radius: 5 });
        plot.dots([back], { series: 4, shape: "cross", radius: 5 });
      }
      const change = lr === 0 ? "stays as it is" : Math.abs(next - here) < 1e-9 ? "comes back to its value" : next < here ? "falls" : "rises";
      const turn = uphill(p(), c);
      const own = c === 0 ? "J is quadratic, and the parabola is exact." : turn < FAR ? `J itself goes uphill from η = ${number(turn)}.` : `J itself falls for every η up to ${FAR}.`;
      const said = curvature > 0 ? `the model is lowest at η = ${number(best)} and back at its first value at ${number(bound)}.` : "the model falls for every η.";
      fig.say(`With η = ${number(lr, 2)}, J ${change}: ${number(here)} before the step, ${number(next)} after it. gᵀg = ${number(slope, 2)} and gᵀHg = ${number(curvature, 2)}: ${said} ${own}`,
        curvature <= 0 && "Task solved: the model has no uphill bound here.");
    });
    fig.expose({ model, linear, quadratic, actual, uphill, point: p });
  });
})();
