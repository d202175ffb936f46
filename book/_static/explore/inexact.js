/* Gradient descent on J = ½(0.3 w₁² + 2 w₂²) with inexact gradients: each has an error with the mean ē,
   the bias, and the standard deviation σₑ. The run, its predicted limit and spread, and the loss that is left. */
(function () {
  "use strict";
  const { number, descend, random } = Explore;
  const CURVATURES = [0.3, 2];
  const START = [-3.4, 1.6];
  const STEPS = 400;
  const CLOSE = 0.05; // relative difference of the two parts of the loss that counts as equal

  // --- the mathematics ---

  /** Errors of gradients, the same draws for every bias and every standard deviation. */
  function errors(bias, sigma) {
    const draw = random(4);
    return Array.from({ length: STEPS }, () => bias.map((mean) => mean + sigma * draw.normal()));
  }

  function run(lr, bias, sigma) {
    let step = 0;
    const all = errors(bias, sigma);
    return descend((w) => { const e = all[step++]; return w.map((x, i) => CURVATURES[i] * x + e[i]); }, START, lr, STEPS);
  }

  const limit = (bias) => bias.map((mean, i) => -mean / CURVATURES[i]);
  const variance = (lr, sigma) => CURVATURES.map((h) => (lr * sigma ** 2) / (h * (2 - lr * h)));
  const weighted = (values) => values.reduce((sum, v, i) => sum + (CURVATURES[i] * v) / 2, 0);

  /** The parts of the expected loss after many steps: that of the bias, and that of the noise. */
  const parts = (lr, bias, sigma) => [weighted(limit(bias).map((x) => x * x)), weighted(variance(lr, sigma))];

  const around = ([a, b], [r, s]) => Array.from({ length: 73 }, (_, k) => [a + r * Math.cos((k * Math.PI) / 36), b + s * Math.sin((k * Math.PI) / 36)]);

  // --- the figure ---

  Explore.figure("inexact", (fig) => {
    const { state } = fig;
    Object.assign(state, { bias: [0.3, 0.3] });
    fig.slider({ id: "lr", label: "Learning rate η", min: 0.02, max: 0.9, step: 0.01, value: 0.2 });
    fig.slider({ id: "sigma", label: "Standard deviation σₑ of the errors", min: 0, max: 1, step: 0.05, value: 0.5 });
    const left = () => parts(state.lr, state.bias, state.sigma);
    const cloud = fig.plot({
      title: "Errors of the gradients: drag their mean", height: 340, x: { min: -2, max: 2, label: "along w₁" }, y: { min: -2, max: 2, label: "along w₂" },
      alt: () => `A cloud of errors around their mean (${state.bias.map((v) => number(v, 2)).join(", ")}), with a standard deviation of ${number(state.sigma, 2)} in each direction.`,
    });
    cloud.handle({
      label: "Bias: mean of the errors", series: 2, pick: true, step: [0.05, 0.05], get: () => state.bias,
      set: (x, y) => { state.bias = [x, y].map((v) => Math.max(-1, Math.min(1, v))); }, describe: (x, y) => `${number(x, 2)} and ${number(y, 2)}`,
    });
    const plane = fig.plot({
      title: `${STEPS} steps of gradient descent`, height: 340, x: { min: -4, max: 4, label: "w₁ (flat)" }, y: { min: -2.4, max: 2.4, label: "w₂ (steep)" },
      alt: () => `Level curves of an elongated bowl, and a run that comes to the point (${limit(state.bias).map((v) => number(v, 2)).join(", ")}) and stays within an ellipse around it.`,
    });
    fig.legend([[1, "gradient descent"], [3, "predicted spread, two standard deviations"], [2, "bias, and predicted limit", "square"]]);

    fig.draw(({ lr, sigma, bias }) => {
      const end = limit(bias), [ofBias, ofNoise] = left(), path = run(lr, bias, sigma);
      cloud.guide(0, 0);
      cloud.dots(errors(bias, sigma).slice(0, 150), { series: 1, radius: 1.6 });
      cloud.curve([[0, 0], bias], { series: 2, width: 2.5 });
      plane.contours((a, b) => (CURVATURES[0] * a * a + CURVATURES[1] * b * b) / 2, Array.from({ length: 8 }, (_, k) => ((k + 1) / 3) ** 2));
      plane.curve(path, { series: 1, width: 1 });
      if (sigma) plane.curve(around(end, variance(lr, sigma).map((v) => 2 * Math.sqrt(v))), { series: 3, width: 2.5 });
      plane.dots([end], { series: 2, radius: 6, shape: "square" });
      plane.dots([[0, 0]], { radius: 6, shape: "cross" });
      plane.text([0, 0], "minimum", { dx: 9, dy: -8 });
      const half = parts(lr / 2, bias, sigma);
      fig.say(`After many steps the expected loss is ${number(ofBias + ofNoise, 3)}, of which ${number(ofBias, 3)} is due to the bias and ${number(ofNoise, 3)} to the noise. `
        + `With half the learning rate these parts would be ${number(half[0], 3)} and ${number(half[1], 3)}.`,
      ofBias > 0.01 && Math.abs(ofNoise / ofBias - 1) < CLOSE && "Task solved: bias and noise leave the same loss.");
    });
    fig.expose({ limit, variance, parts, path: () => run(state.lr, state.bias, state.sigma), errors: () => errors(state.bias, state.sigma) });
  });
})();
