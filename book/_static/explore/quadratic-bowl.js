/* Gradient descent on the bowl ½(λ_flat a² + λ_steep s²), with λ_steep = 1 and λ_flat = 1/κ.
   The dots come from running the iteration, the curves from the closed form (1 − ηλ)^τ. */
(function () {
  "use strict";
  const { number } = Explore;
  const STEPS = 40;
  const TURN = (28 * Math.PI) / 180; // of the flat direction against the horizontal axis
  const TOP = 1.3; // of the rates that are shown

  // --- the mathematics ---

  const spectrum = (kappa) => ({ flat: 1 / kappa, steep: 1 });
  const rate = (lr, lambda) => Math.max(Math.abs(1 - lr * lambda.flat), Math.abs(1 - lr * lambda.steep));
  const bestStep = (lambda) => 2 / (lambda.flat + lambda.steep);
  const digit = (r) => Math.ceil(Math.log(10) / -Math.log(r) - 1e-9); // steps for one more digit
  const turn = ([x, y], angle) => [Math.cos(angle) * x - Math.sin(angle) * y, Math.sin(angle) * x + Math.cos(angle) * y];

  /** The iterates in the coordinates of the eigenvectors, the start first. */
  function descend(lr, lambda, [flat, steep], steps) {
    const path = [[flat, steep]];
    for (let t = 0; t < steps; t += 1) {
      const [a, s] = path[t];
      path.push([a - lr * lambda.flat * a, s - lr * lambda.steep * s]);
    }
    return path;
  }

  function describe(lr, lambda) {
    const r = rate(lr, lambda);
    const factor = 1 - lr * lambda.steep;
    const best = bestStep(lambda);
    if (lr === 0) return "The learning rate is zero, so the iteration stays at its start.";
    if (r > 1 + 1e-9) return `The iteration diverges: each step multiplies the steep coefficient by ${number(factor, 2)}. It converges for learning rates below 2/λmax = 2.`;
    if (r > 1 - 1e-9) return "The learning rate is exactly 2/λmax: the steep coefficient changes its sign at each step and never shrinks.";
    const slow = lambda.flat === lambda.steep ? "Both directions have the same curvature."
      : Math.abs(lr - best) < 0.006 ? "Both ends of the spectrum are equally slow."
        : lr < best ? "The flat direction is the slower of the two." : "The steep direction is the slower of the two.";
    const manner = factor < -1e-9 ? "The iteration converges, and the steep coefficient changes its sign at each step." : "The iteration converges without overshooting.";
    const steps = digit(r);
    const pace = r < 1e-3 ? "One step is enough." : `One more correct digit takes ${steps} step${steps === 1 ? "" : "s"}.`;
    return `${manner} ${slow} The rate is ${number(r)}. ${pace}`;
  }

  // --- the figure ---

  Explore.figure("quadratic-bowl", (fig) => {
    Object.assign(fig.state, { start: [1.2, 0.85] });
    fig.slider({ id: "kappa", label: "Condition number κ", min: 1, max: 50, step: 1, value: 10, format: (v) => number(v, Number.isInteger(v) ? 0 : 2) });
    fig.slider({ id: "lr", label: "Learning rate η", min: 0, max: 2.2, step: 0.01, value: 1.7 });
    fig.player({ id: "step", label: "Steps τ", max: STEPS, interval: 140 });
    fig.button("Take the best learning rate", () => fig.assign({ lr: bestStep(spectrum(fig.state.kappa)) }));

    const state = fig.state;
    const path = () => descend(state.lr, spectrum(state.kappa), state.start, STEPS);
    // the same path twice: where a rotation places it, and along the eigenvectors
    const planes = [
      ["The path on the bowl: drag the start", "Start of gradient descent", (p) => turn(p, TURN), (p) => turn(p, -TURN)],
      ["The same path in α: drag the start", "The same start in α", (p) => p, (p) => p],
    ].map(([title, label, place, back]) => {
      const plane = fig.plot({
        title, height: 320, bare: true, x: { min: -1.66, max: 1.66 }, y: { min: -1.56, max: 1.56 },
        alt: () => `Level curves of a bowl with condition number ${number(state.kappa, 0)}, and the path of ${state.step} gradient steps.`,
      });
      plane.handle({
        label, pick: true, step: [0.02, 0.02],
        get: () => place(state.start),
        set: (x, y) => { state.start = back([x, y]); },
        describe: () => `flat coefficient ${number(state.start[0], 2)}, steep coefficient ${number(state.start[1], 2)}`,
      });
      return [plane, place];
    });
    const coefficients = fig.plot({
      title: "Coefficients by step", height: 180,
      x: { min: 0, max: STEPS, label: "step τ" }, y: { min: -1.6, max: 1.6, ticks: [-1, 0, 1] },
      alt: () => {
        const lambda = spectrum(state.kappa);
        return `Coefficients by step. Each step multiplies the flat one by ${number(1 - state.lr * lambda.flat, 2)} and the steep one by ${number(1 - state.lr * lambda.steep, 2)}.`;
      },
    });
    const rates = fig.plot({
      title: "Rate against learning rate: drag the point", height: 180,
      x: { min: 0, max: 2.2, label: "learning rate η", ticks: [0, 0.5, 1, 1.5, 2] }, y: { min: 0, max: TOP, ticks: [0, 0.5, 1] },
      alt: () => `Rate against learning rate: ${number(rate(state.lr, spectrum(state.kappa)))} at ${number(state.lr, 2)}, lowest at ${number(bestStep(spectrum(state.kappa)), 2)}.`,
    });
    rates.handle({
      label: "Learning rate", move: "x", step: [0.01, 0],
      get: () => [state.lr, Math.min(TOP, rate(state.lr, spectrum(state.kappa)))],
      set: (lr) => fig.assign({ lr }),
      describe: (lr) => `${number(lr, 2)}, rate ${number(rate(lr, spectrum(state.kappa)))}`,
    });

    fig.draw(() => {
      const { kappa, lr, step, start } = state;
      const lambda = spectrum(kappa);
      const all = path();
      const seen = all.slice(0, step + 1);
      for (const [plane, place] of planes) {
        for (let k = 1; k <= 11; k += 1) {
          const [long, short] = [0.14 * k * Math.sqrt(kappa), 0.14 * k];
          const ellipse = Array.from({ length: 91 }, (_, i) => [long * Math.cos((i * Math.PI) / 45), short * Math.sin((i * Math.PI) / 45)]);
          plane.curve(ellipse.map(place), { class: "ex-level" });
        }
        plane.curve([[-2.5, 0], [2.5, 0]].map(place), { series: 1, width: 1.2 });
        plane.curve([[0, -2.5], [0, 2.5]].map(place), { series: 2, width: 1.2, dash: true });
        plane.text(place([1.52, 0]), "flat", { series: 1, bold: true, dy: -8, anchor: "end" });
        plane.text(place([0, 1.4]), "steep", { series: 2, bold: true, dx: -8, anchor: "end" });
        plane.curve(seen.map(place), { width: 1.5 });
        plane.dots(seen.map(place), { radius: 2.8 });
      }

      coefficients.guide(null, 0);
      ["flat", "steep"].forEach((name, i) => {
        const law = all.map((_, t) => [t, start[i] * (1 - lr * lambda[name]) ** t]);
        coefficients.curve(law, { series: i + 1, dash: i === 1 });
        coefficients.dots(seen.map((p, t) => [t, p[i]]).filter(([, v]) => Math.abs(v) < 1.6), { series: i + 1, shape: ["circle", "square"][i], radius: 2.6 });
      });
      coefficients.text([STEPS, 1.6], "● flat", { series: 1, bold: true, anchor: "end", dx: -58, dy: 12 });
      coefficients.text([STEPS, 1.6], "■ steep", { series: 2, bold: true, anchor: "end", dy: 12 });

      rates.area([[0, 1], [2.2, 1], [2.2, TOP], [0, TOP]]);
      rates.text([0, TOP], "diverges", { dx: 6, dy: 15 });
      rates.curve((v) => rate(v, lambda), { width: 7, faint: true });
      rates.curve((v) => Math.abs(1 - v * lambda.flat), { series: 1 });
      rates.curve((v) => Math.abs(1 - v * lambda.steep), { series: 2, dash: true });
      rates.guide(lr, null);
      const best = Math.abs(lr - bestStep(lambda)) < 0.006;
      const reached = {
        limit: lr < 2 && lr > 1.985 && "Task solved: a slightly larger learning rate does not converge.",
        digits: best && digit(rate(lr, lambda)) === 24 && "Task solved: twice as many steps as with κ = 10.",
      }[fig.task] ?? (kappa > 1 && best && "Task solved: this is the best learning rate.");
      fig.say(describe(lr, lambda), reached);
    });

    fig.expose({ path, rate: () => rate(state.lr, spectrum(state.kappa)) });
  });
})();
