/* Inputs whose mean is not zero: the cloud, the level curves of the loss of a linear model, whose
   Hessian is the second moment matrix C + x̄x̄ᵀ, and gradient descent at its best learning rate. */
(function () {
  "use strict";
  const { number, times, descend, random } = Explore;
  const EXAMPLES = 80;
  const SPREAD = [1, 0.6]; // standard deviations of the inputs, along and across
  const TILT = Math.PI / 6;
  const FRAME = 4.5;
  const TARGET = 10; // times the condition number of the centered inputs

  // --- the mathematics ---

  const turn = ([x, y], angle) => [Math.cos(angle) * x - Math.sin(angle) * y, Math.sin(angle) * x + Math.cos(angle) * y];

  /** Inputs with mean zero and, exactly, these standard deviations. */
  const centered = (() => {
    const draw = random(3);
    const mean = (list) => list.reduce((sum, v) => sum + v, 0) / list.length;
    const dot = (u, v) => mean(u.map((a, i) => a * v[i]));
    const column = () => { const u = Array.from({ length: EXAMPLES }, draw.normal), m = mean(u); return u.map((v) => v - m); };
    const first = column(), other = column(), slope = dot(first, other) / dot(first, first);
    const second = other.map((v, i) => v - slope * first[i]);
    const [a, b] = [first, second].map((u, i) => u.map((v) => (SPREAD[i] * v) / Math.sqrt(dot(u, u))));
    return a.map((v, i) => turn([v, b[i]], TILT));
  })();

  const inputs = ([x, y]) => centered.map(([a, b]) => [a + x, b + y]);

  /** The entries p, q, r of the second moment matrix [[p, r], [r, q]]. */
  const moments = (mean) => [[0, 0], [1, 1], [0, 1]].map(([i, j]) => inputs(mean).reduce((sum, x) => sum + x[i] * x[j], 0) / EXAMPLES);

  function eigenvalues([p, q, r]) {
    const [middle, half] = [(p + q) / 2, Math.hypot((p - q) / 2, r)];
    return [middle - half, middle + half];
  }

  function kappa(mean) {
    const [low, high] = eigenvalues(moments(mean));
    return high / low;
  }

  /** Gradient descent at its best rate on ½ wᵀHw. */
  function run(mean, start) {
    const [p, q, r] = moments(mean), [low, high] = eigenvalues([p, q, r]);
    return descend(([a, b]) => [p * a + r * b, r * a + q * b], start, 2 / (low + high), 60);
  }

  // --- the figure ---

  Explore.figure("centering", (fig) => {
    const { state } = fig;
    Object.assign(state, { angle: 0.9, start: [-1.5, 0.9] });
    fig.slider({ id: "shift", label: "Distance of the mean from 0", min: 0, max: 4, step: 0.05, value: 2 });
    fig.button("Center the inputs", () => fig.assign({ shift: 0 }));
    const mean = () => turn([state.shift, 0], state.angle);
    const cloud = fig.plot({
      title: "The inputs: drag their mean", height: 340, x: { min: -FRAME, max: FRAME, label: "first input" }, y: { min: -FRAME, max: FRAME, label: "second input" },
      alt: () => `A tilted cloud of ${EXAMPLES} inputs, whose mean has a distance of ${number(state.shift, 2)} from the origin.`,
    });
    cloud.handle({
      label: "Mean of the inputs", series: 2, pick: true, step: [0.05, 0.05], get: mean,
      set: (x, y) => fig.assign({ shift: Math.min(4, Math.hypot(x, y)), angle: x || y ? Math.atan2(y, x) : state.angle }),
      describe: (x, y) => `${number(x, 2)} and ${number(y, 2)}, condition number ${number(kappa(mean()), 1)}`,
    });
    const bowl = fig.plot({
      title: "The loss of the two weights", height: 340, x: { min: -2, max: 2, label: "w₁ − w₁*" }, y: { min: -2, max: 2, label: "w₂ − w₂*" },
      alt: () => `Level curves of the loss with condition number ${number(kappa(mean()), 1)}, and gradient descent at its best learning rate.`,
    });
    bowl.handle({
      label: "Start of gradient descent", series: 1, pick: true, step: [0.05, 0.05], get: () => state.start,
      set: (a, b) => { state.start = [a, b]; }, describe: (a, b) => `${number(a, 2)} and ${number(b, 2)} from the minimum`,
    });

    fig.draw(({ shift, start }) => {
      const [p, q, r] = moments(mean()), [low, high] = eigenvalues([p, q, r]), ratio = high / low, home = kappa([0, 0]);
      cloud.guide(0, 0);
      cloud.dots(inputs(mean()), { series: 1, radius: 2 });
      cloud.curve([[0, 0], mean()], { series: 2, width: 2.5 });
      bowl.contours((a, b) => (p * a * a + 2 * r * a * b + q * b * b) / 2, Array.from({ length: 9 }, (_, k) => ((k + 1) / 3) ** 2));
      const path = run(mean(), start);
      bowl.curve(path, { series: 1, width: 1.5 });
      bowl.dots(path, { series: 1, radius: 2.6 });
      const digit = Math.ceil(Math.log(10) / Math.log((ratio + 1) / (ratio - 1)) - 1e-9);
      const note = shift === 0 ? "The inputs are centered." : ratio < home ? `This is less than the ${number(home, 1)} of centered inputs: the mean lies in the direction in which the cloud is narrow.` : `Centered, the inputs have κ = ${number(home, 1)}.`;
      fig.say(`The Hessian has the eigenvalues ${number(low, 2)} and ${number(high, 2)}, hence κ = ${number(ratio, 1)}: at the best learning rate one more digit takes at most ${times(digit, "step")}. ${note}`,
        Math.abs(ratio / home / TARGET - 1) < 0.025 && `Task solved: κ is ${TARGET} times that of centered inputs.`);
    });
    fig.expose({ centered, inputs, moments, kappa, mean, path: () => run(mean(), state.start) });
  });
})();
