/* One step of gradient descent on J(w) = 1 − exp(−w²/2): the tangent's prediction, the quadratic model's,
   and the loss itself, which falls more slowly, as fast or faster, by the sign of the curvature. */
(function () {
  "use strict";
  const { number } = Explore;

  // --- the mathematics ---

  const loss = (w) => 1 - Math.exp(-w * w / 2);
  const slope = (w) => w * Math.exp(-w * w / 2);
  const curvature = (w) => (1 - w * w) * Math.exp(-w * w / 2);
  const tangent = (w, lr) => loss(w) - lr * slope(w) ** 2;
  const model = (w, lr) => tangent(w, lr) + (lr * lr * slope(w) ** 2 * curvature(w)) / 2;
  const after = (w, lr) => w - lr * slope(w);

  // --- the figure ---

  Explore.figure("taylor", (fig) => {
    const { state } = fig;
    Object.assign(state, { w: 0.6 });
    fig.slider({ id: "lr", label: "Learning rate η", min: 0, max: 3, step: 0.05, value: 1 });
    const plot = fig.plot({
      width: 560, height: 270, x: { min: -3, max: 3, label: "w" }, y: { min: -0.25, max: 1.1, label: "J" },
      alt: () => `The loss with its tangent and its quadratic model at w = ${number(state.w, 2)}, where the curvature is ${number(curvature(state.w), 2)}, and one step of gradient descent.`,
    });
    plot.node.classList.add("ex-wide");
    plot.handle({
      label: "Center ŵ", move: "x", series: 1, pick: true, step: [0.05, 1], get: () => [state.w, loss(state.w)],
      set: (w) => { state.w = w; }, describe: (w) => `w ${number(w, 2)}, curvature ${number(curvature(w), 2)}`,
    });
    fig.legend([[1, "loss"], [3, "tangent", "dashed"], [2, "quadratic model", "dashed"], [1, "end of the step", "square"]]);

    fig.draw(({ w, lr }) => {
      const g = slope(w), h = curvature(w), end = after(w, lr);
      plot.curve(loss, { series: 1, width: 3 });
      plot.curve((v) => loss(w) + g * (v - w), { series: 3, dash: true });
      plot.curve((v) => loss(w) + g * (v - w) + (h * (v - w) ** 2) / 2, { series: 2, dash: true });
      plot.guide(end);
      plot.dots([[end, tangent(w, lr)]], { series: 3, radius: 4.5 });
      plot.dots([[end, model(w, lr)]], { series: 2, radius: 4.5, shape: "diamond" });
      plot.dots([[end, loss(end)]], { series: 1, radius: 5, shape: "square" });
      if (g === 0 || lr === 0) return fig.say(g === 0 ? "The slope is zero here: a step of gradient descent does not move w. Drag the center away." : "With η = 0 there is no step.");
      const flat = Math.abs(h) < 0.005;
      const kind = flat ? "The curvature is zero: to second order the loss falls as the tangent predicts." : h > 0 ? "The curvature is positive: the model falls by less than the tangent." : "The curvature is negative: the model falls by more than the tangent.";
      const fall = (value) => number(loss(w) - value);
      fig.say(`${kind} The tangent predicts that the loss falls by ${fall(tangent(w, lr))}, the quadratic model by ${fall(model(w, lr))}; it falls by ${fall(loss(end))}.`,
        flat ? "Task solved: a curvature of zero." : h < 0 && loss(end) < tangent(w, lr) && "Task solved: the loss falls by more than the tangent predicts.");
    });
    fig.expose({ loss, slope, curvature, tangent, model, after });
  });
})();
