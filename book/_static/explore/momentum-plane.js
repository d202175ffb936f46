/* Momentum in one eigendirection: θ(t+1) = (1 + α − ηλ) θ(t) − α θ(t−1). The eigenvalues of the
   2 × 2 matrix of this iteration solve z² − (1 + α − ηλ) z + α = 0. The curves come from running
   v ← αv − ηλθ, θ ← θ + v, the marks on the disc from the quadratic equation. The point is the
   steepest direction of a bowl, with λ = 1; its flattest one, with λ = 1/κ, has the same α. */
(function () {
  "use strict";
  const { number, random } = Explore;
  const STEPS = 60;
  const LONG = 200;
  const EDGE = 4.2; // of ηλ
  const FLOOR = 1e-8; // of the errors that are shown
  const SIGMA = 0.05; // of the noise in each component of the gradient
  const TARGET = { kappa: 50, rate: 0.77 }; // the best rate for κ = 50 is 0.752
  const TOPS = [1.5, 2, 5, 10, 20, 50, 100, 200]; // of the axis of the error; 200 is enough unless it diverges

  // --- the mathematics ---

  /** The two eigenvalues, each as [real part, imaginary part]; the larger modulus first. */
  function eigenvalues(x, alpha) {
    const half = (1 + alpha - x) / 2;
    const inside = half * half - alpha;
    if (inside < 0) return [[half, Math.sqrt(-inside)], [half, -Math.sqrt(-inside)]];
    const far = half + (half < 0 ? -1 : 1) * Math.sqrt(inside);
    return [[far, 0], [far === 0 ? 0 : alpha / far, 0]]; // their product is α
  }

  const rate = (x, alpha) => Math.hypot(...eigenvalues(x, alpha)[0]);

  const { normal } = random(1);
  const noise = [0, 1].map(() => Array.from({ length: 5000 }, normal)); // for two directions

  /** θ(0), θ(1), … from rest at θ(0) = 1; a push displaces each velocity by its size times noise. */
  function iterate(x, alpha, steps, push = 0, direction = 0) {
    const path = [1];
    for (let t = 0, v = 0; t < steps; t += 1) {
      v = alpha * v - x * path[t] - push * noise[direction][t];
      path.push(path[t] + v);
    }
    return path;
  }

  /** The damping ratio of the oscillator that the iteration samples: −ln α over 2 √(ln z₁ ln z₂). */
  function damping(x, alpha) {
    const [[a, b], [c]] = eigenvalues(x, alpha);
    const product = b ? Math.log(alpha) ** 2 / 4 + Math.atan2(b, a) ** 2 : Math.log(a) * Math.log(c);
    return -Math.log(alpha) / (2 * Math.sqrt(product));
  }

  /** Polyak's settings for eigenvalues between 1/κ and 1, and those of gradient descent. */
  function best(kappa) {
    const root = Math.sqrt(kappa);
    const r = (root - 1) / (root + 1);
    return { alpha: r * r, lr: (2 / (1 + 1 / root)) ** 2, rate: r, plain: { lr: 2 / (1 + 1 / kappa), rate: (kappa - 1) / (kappa + 1) } };
  }

  /** The distance to the minimum from the start (1, 1), in the directions of 1/κ and of 1. */
  function errors(lr, alpha, kappa, sigma = 0) {
    const [flat, steep] = [iterate(lr / kappa, alpha, LONG, lr * sigma, 1), iterate(lr, alpha, LONG, lr * sigma)];
    return flat.map((v, t) => Math.hypot(v, steep[t]) / Math.SQRT2);
  }

  /** The convergence rate of the bowl: between its ends no direction is slower. */
  const bowl = (x, alpha, kappa) => Math.max(rate(x, alpha), rate(x / kappa, alpha));

  /** The root mean square error in the long run under noise, by formula, with λ = 1. */
  const floor = (x, alpha) => SIGMA * Math.sqrt((x * (1 + alpha)) / ((1 - alpha) * (2 * (1 + alpha) - x)));

  function measured(x, alpha) {
    const late = iterate(x, alpha, noise[0].length, x * SIGMA).slice(1000);
    return Math.sqrt(late.reduce((sum, v) => sum + v * v, 0) / late.length);
  }

  function level(x, alpha) {
    if (x === 0 || rate(x, alpha) > 0.999) return "";
    const effective = x / (1 - alpha);
    const plain = effective < 2 ? `that of gradient descent with the same effective rate η/(1 − α) is ${number(floor(effective, 0))}` : "gradient descent with the same effective rate η/(1 − α) diverges";
    return `With noise of standard deviation ${SIGMA} in the gradient the error levels off at ${number(measured(x, alpha))} (root mean square, measured; formula ${number(floor(x, alpha))}); ${plain}. `;
  }

  /** How far the axis of the error reaches, and the step after which the error has left it. */
  function extent(path) {
    const largest = Math.max(...path.map(Math.abs));
    const top = largest <= 200 ? TOPS.find((v) => v >= largest) : 20;
    const left = path.findIndex((v) => Math.abs(v) > top);
    return { top, left: left < 0 ? path.length : left };
  }

  const NEAR = 1e-9;
  function regime(x, alpha) {
    const inside = (1 + alpha - x) ** 2 - 4 * alpha;
    if (x === 0) return "still";
    if (x > 2 * (1 + alpha) + NEAR) return "divergent";
    if (rate(x, alpha) > 1 - NEAR) return "limit";
    if (alpha === 0) return "plain";
    if (Math.abs(inside) < NEAR) return "critical";
    return inside < 0 ? "complex" : x < 1 + alpha ? "overdamped" : "alternating";
  }

  const WORDS = {
    still: () => "The learning rate is zero: nothing moves.",
    divergent: (r) => `Divergent: an eigenvalue lies outside the unit disc, and the error grows by the factor ${number(r)} per step. The iteration converges for ηλ < 2(1 + α).`,
    limit: () => "On the limit: an eigenvalue lies on the unit circle, and the error does not shrink.",
    plain: (r) => `Gradient descent, without momentum: one eigenvalue is 1 − ηλ, the other 0. The error shrinks by the factor ${number(r)} per step.`,
    critical: (r) => `Critically damped (damping ratio 1): both eigenvalues coincide, with modulus √α = ${number(r)}. The error behaves like t · ${number(r)}ᵗ.`,
    complex: (r, d) => `Complex regime, underdamped (damping ratio ${number(d, 2)}): the eigenvalues are a conjugate pair, the error oscillates, and it shrinks by the factor √α = ${number(r)} per step, whatever ηλ is.`,
    overdamped: (r, d) => `Real regime, overdamped (damping ratio ${number(d, 2)}): both eigenvalues are positive, the error decays without oscillating, by the factor ${number(r)} per step. A larger η would be faster.`,
    alternating: (r) => `Real regime, alternating: both eigenvalues are negative, and the error changes its sign at each step. It shrinks by the factor ${number(r)} per step. A smaller η would be faster.`,
  };

  const digit = (r) => (r < 1e-9 ? 1 : Math.ceil(Math.log(10) / -Math.log(r) - 1e-9));

  function compare(kappa) {
    const { rate: r, plain } = best(kappa);
    const k = number(kappa, kappa < 10 ? 1 : 0);
    if (kappa === 1) return "For κ = 1 gradient descent arrives in one step, and the best α is 0.";
    return `The best rate of gradient descent for κ = ${k} is ${number(plain.rate)}, ${digit(plain.rate)} step${digit(plain.rate) === 1 ? "" : "s"} for one more correct digit, and that of momentum ${number(r)}, ${digit(r)} step${digit(r) === 1 ? "" : "s"}.`;
  }

  // --- the figure ---

  Explore.figure("momentum-plane", (fig) => {
    const state = Object.assign(fig.state, { x: 0.3 });
    fig.slider({ id: "kappa", label: "Condition number κ", min: 1, max: 1000, value: 50, log: true, format: (v) => number(v, v < 10 ? 1 : 0) });
    fig.slider({ id: "alpha", label: "Momentum α", min: 0, max: 1, step: 0.01, value: 0.8 });
    fig.button("Take the best setting for κ", () => { const { lr, alpha } = best(state.kappa); fig.assign({ x: lr, alpha }); });
    fig.button("Take momentum away", () => fig.assign({ alpha: 0 }));
    fig.check({ id: "noise", label: "Noise in the gradient" });

    const at = () => `ηλ ${number(state.x, 2)}, α ${number(state.alpha, 2)}`;
    const plane = fig.plot({
      title: "Settings: drag the steep end", height: 270,
      x: { min: 0, max: EDGE, label: "ηλ", ticks: [0, 1, 2, 3, 4] }, y: { min: 0, max: 1, label: "momentum α", ticks: [0, 0.25, 0.5, 0.75, 1] },
      alt: () => `Plane of ηλ and α with the complex, the real and the divergent regime; the steepest direction is at ${at()}, the flattest one at ηλ ${number(state.x / state.kappa, 3)}.`,
    });
    plane.handle({
      label: "Setting of momentum", series: 4, pick: true, step: [0.02, 0.01],
      get: () => [state.x, state.alpha],
      set: (x, alpha) => fig.assign({ x, alpha }),
      describe: (x, alpha) => `${at()}, rate ${number(rate(x, alpha))}`,
    });
    const disc = fig.plot({
      title: "The eigenvalues on the unit disc", height: 270,
      x: { min: -1.45, max: 1.45, label: "real part", ticks: [-1, 0, 1] }, y: { min: -1.045, max: 1.045, label: "imaginary part", ticks: [-1, 0, 1] },
      alt: () => `Unit disc with the two eigenvalues ${eigenvalues(state.x, state.alpha).map(([a, b]) => `${number(a, 2)}${b ? ` ${b < 0 ? "−" : "+"} ${number(Math.abs(b), 2)} i` : ""}`).join(" and ")}.`,
    });
    const error = fig.plot({
      title: "The error θ in the steepest direction", height: 210,
      x: { min: 0, max: STEPS, label: "step t" }, y: { min: -1.5, max: 1.5, ticks: [-1, 0, 1] },
      alt: () => `Error against step, on an axis up to ${number(extent(path()).top, 1)}, and two curves that change by the factor ${number(rate(state.x, state.alpha))} per step.`,
    });
    const race = fig.plot({
      title: "Distance to the minimum of the bowl", height: 210,
      x: { min: 0, max: LONG, label: "step t" }, y: { min: FLOOR, max: 10, log: true },
      alt: () => `Distance to the minimum against step, logarithmic, for gradient descent and momentum at their best settings and for the setting shown. ${compare(state.kappa)}`,
    });
    const sigma = () => (state.noise ? SIGMA : 0);
    const path = () => iterate(state.x, state.alpha, STEPS, state.x * sigma());

    const circle = (r) => Array.from({ length: 91 }, (_, i) => [r * Math.cos((i * Math.PI) / 45), r * Math.sin((i * Math.PI) / 45)]);
    const shares = Array.from({ length: 61 }, (_, i) => (i / 60) ** 2);

    fig.draw(() => {
      const { x, alpha, kappa } = state;
      const tuned = best(kappa);
      const left = shares.map((a) => [(1 - Math.sqrt(a)) ** 2, a]);
      const right = shares.map((a) => [(1 + Math.sqrt(a)) ** 2, a]);
      plane.area([...left, ...[...right].reverse()], { series: 1 });
      plane.area([[2, 0], [4, 1], [EDGE, 1], [EDGE, 0]]);
      plane.curve([...[...left].reverse(), ...right], { series: 1 });
      plane.curve([[2, 0], [4, 1]], { width: 1.5 });
      plane.text([1.05, alpha > 0.45 ? 0.25 : 0.75], "complex", { series: 1, bold: true, anchor: "middle" });
      plane.text([0.04, 0.03], "real +");
      plane.text([2.02, 0.03], "real −", { anchor: "end" });
      plane.text([4.1, 0.4], "divergent", { bold: true, anchor: "end" });
      plane.curve([[x / kappa, alpha], [x, alpha]], { series: 4, width: 3 });
      plane.dots([[x / kappa, alpha]], { series: 4, radius: 5, shape: "square" });
      if (x > 0.9) plane.text([(x * (1 + 1 / kappa)) / 2, alpha], `bowl with κ = ${number(kappa, kappa < 10 ? 1 : 0)}`, { series: 4, anchor: "middle", dy: alpha > 0.93 ? 15 : -7 });

      const reach = Math.max(1.45, 1.08 * rate(x, alpha)), high = (reach * 1.045) / 1.45;
      disc.axes({ ...disc.xAxis, min: -reach, max: reach }, { ...disc.yAxis, min: -high, max: high });
      disc.area(circle(1));
      disc.curve(circle(1), { width: 1.5 });
      disc.curve(circle(Math.sqrt(alpha)), { series: 1, dash: "5 3", width: 1.2 });
      disc.guide(0, 0);
      disc.text([-0.98 * reach, 0.94 * high], "dashed: modulus √α", { series: 1 });
      disc.dots(eigenvalues(x, alpha), { series: 4, radius: 6, shape: "diamond" });

      const shown = path();
      const r = rate(x, alpha);
      const { top, left: gone } = extent(shown);
      error.axes(error.xAxis, { min: -top, max: top, ...(top < 2 ? { ticks: [-1, 0, 1] } : {}) });
      error.guide(null, 0);
      for (const sign of [1, -1]) error.curve(shown.map((_, t) => [t, sign * r ** t]), { series: 1, dash: "5 3", width: 1.2 });
      error.curve(shown.slice(0, gone + 1).map((v, t) => [t, v]), { series: 4, width: 1.2 });
      error.dots(shown.slice(0, gone).map((v, t) => [t, v]), { series: 4, radius: 2.4 });
      error.text([STEPS, top], "dashed: ± rateᵗ", { series: 1, anchor: "end", dy: -4 });
      if (gone <= STEPS) error.text([STEPS, 0], `exceeds ±${top} at step ${gone}`, { series: 4, anchor: "end", dy: -6 });

      const runs = [errors(tuned.plain.lr, 0, kappa, sigma()), errors(tuned.lr, tuned.alpha, kappa, sigma()), errors(x, alpha, kappa, sigma())];
      runs.forEach((list, i) => race.curve(list.map((v, t) => [t, Math.max(v, FLOOR / 10)]), { series: 2 + i, dash: ["7 3", "2 3", ""][i], width: i < 2 ? 1.5 : 2.5 }));
      ["gradient descent, best (dashed)", "momentum, best (dotted)", "this setting"].forEach((words, i) => race.text([LONG, state.noise ? 1e-5 : 10], words, { series: 2 + i, bold: true, anchor: "end", dy: 5 + 16 * i }));
      const whole = bowl(x, alpha, kappa);
      const solved = kappa >= TARGET.kappa && whole < TARGET.rate && `Task solved: with κ = ${number(kappa, 0)} the rate of the bowl is below ${TARGET.rate}.`;
      fig.say(`${at()}. ${WORDS[regime(x, alpha)](r, damping(x, alpha))} The bowl has the rate ${number(whole)}. ${state.noise ? level(x, alpha) : ""}${compare(kappa)}`, solved);
    });

    fig.expose({
      eigenvalues: () => eigenvalues(state.x, state.alpha),
      path,
      bowl: () => bowl(state.x, state.alpha, state.kappa),
      floor: () => floor(state.x, state.alpha),
      measured: () => measured(state.x, state.alpha),
      run: () => errors(state.x, state.alpha, state.kappa, sigma()),
      rate: () => rate(state.x, state.alpha),
      regime: () => regime(state.x, state.alpha),
      damping: () => damping(state.x, state.alpha),
      extent: () => extent(path()),
      best: () => best(state.kappa),
      errors: () => { const b = best(state.kappa); return [errors(b.plain.lr, 0, state.kappa), errors(b.lr, b.alpha, state.kappa)]; },
    });
  });
})();
