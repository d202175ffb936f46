/* A start near a saddle: gradient descent on J = ½(x² − y²), the steps that it needs to leave, and
   the norm of the gradient on the way. */
(function () {
  "use strict";
  const { number, power } = Explore;

  // --- the mathematics: a step multiplies x by 1 − η and y by 1 + η ---

  const LIMIT = 600;
  const STAY = 40; // steps that are shown of a start that never leaves

  /** Iterate until |y| ≥ 1. A start on the x axis stays on it. */
  function descend([x, y], lr) {
    const path = [[x, y]];
    const last = y === 0 ? STAY : LIMIT;
    while (Math.abs(path.at(-1)[1]) < 1 && path.length <= last) {
      const [a, b] = path.at(-1);
      path.push([a - lr * a, b + lr * b]);
    }
    return path;
  }

  /** Steps until |y| ≥ 1 in closed form, not yet rounded up. */
  const escape = (d, lr) => Math.log(1 / d) / Math.log(1 + lr);

  /** Norm of the gradient after t steps, in closed form. */
  const norm = ([x, y], lr, t) => Math.hypot(x * Math.abs(1 - lr) ** t, y * (1 + lr) ** t);

  // --- the figure ---

  Explore.figure("saddle", (fig) => {
    const { state } = fig;
    let path;
    state.x = 1;
    fig.slider({ id: "d", label: "Distance d from the x axis", min: 1e-12, max: 1, value: 0.05, log: true, format: (v) => number(v, 2) });
    fig.slider({ id: "lr", label: "Learning rate η", min: 0.05, max: 1.5, step: 0.05, value: 0.3 });
    fig.choice({ id: "side", label: "The start lies", options: [[1, "above the axis"], [0, "exactly on it"], [-1, "below"]], value: 1 });
    const start = () => [state.x, state.side * state.d];
    const plane = fig.plot({
      title: "The path on the saddle", height: 293, x: { min: -1.5, max: 1.5, label: "x" }, y: { min: -1.2, max: 1.2, label: "y" },
      alt: () => `Level curves of a saddle and a path of ${path.length - 1} gradient steps from (${number(state.x, 2)}, ${number(start()[1], 2)}).`,
    });
    plane.handle({
      label: "Start", series: 1, step: [0.05], pick: true, get: start,
      set: (x, y) => {
        if (y === start()[1]) fig.assign({ x });
        else if (Math.abs(y) < 0.012) fig.assign({ x, side: 0 }); // as near as a finger can tell
        else fig.assign({ x, side: Math.sign(y), d: Math.min(1, Number(Math.abs(y).toPrecision(3))) });
      },
      describe: (x, y) => `start at x ${number(x, 2)}, y ${number(y, 2)}`,
    });
    const side = fig.column();
    const times = fig.plot({
      title: "Steps until |y| ≥ 1", height: 200, into: side, x: { min: 1, max: 1e12, log: true, label: "1/d" }, y: { min: 0, max: 1, label: "steps" },
      alt: () => `Steps against 1/d on a logarithmic axis: counted dots on a straight line, and ${path.length - 1} steps for this start.`,
    });
    times.handle({
      label: "Distance of the start, as 1/d", move: "x", series: 1, get: () => [1 / state.d, Math.max(0, escape(state.d, state.lr))],
      step: [10 ** 0.25, 1], set: (inverse) => fig.assign({ d: 1 / inverse, side: state.side || 1 }),
      describe: () => `d ${number(state.d, 2)}, ${Math.max(0, Math.ceil(escape(state.d, state.lr) - 1e-9))} steps`,
    });
    const norms = fig.plot({
      title: "Norm of the gradient", height: 200, into: side, x: { min: 0, max: 1, label: "step" }, y: { min: 1e-7, max: 10, log: true, label: "‖g‖" },
      alt: () => `Norm of the gradient by step, on a logarithmic axis: it falls to ${number(least()[0], 2)} at step ${least()[1]} and then grows.`,
    });
    const least = () => path.reduce(([low, at], [x, y], t) => (Math.hypot(x, y) < low ? [Math.hypot(x, y), t] : [low, at]), [Infinity, 0]);
    fig.legend([[1, "computed by iterating", "circle"], [2, "closed form", "line"]]);

    fig.draw(({ d, lr, side: above }) => {
      path = descend(start(), lr);
      plane.contours((x, y) => (x * x - y * y) / 2, [-0.6, -0.4, -0.2, -0.05, 0.05, 0.2, 0.4, 0.6, 0.8, 1]);
      plane.guide(0, 0);
      const away = state.x > 0 ? -1 : 1; // the words stand where the path does not
      plane.text([1.42 * away, 0], "x shrinks", { anchor: away > 0 ? "end" : "start", dy: -6 });
      plane.text([0, above < 0 ? 1.05 : -1.1], "y grows", { dx: 6 });
      plane.curve(path, { series: 1, width: 1.5 });
      plane.dots(path, { series: 1, radius: 2.6 });
      const top = Math.ceil(escape(1e-12, lr) / 10) * 10;
      times.axes(times.xAxis, { ...times.yAxis, max: top });
      times.curve((inverse) => escape(1 / inverse, lr), { series: 2 });
      times.dots(Array.from({ length: 13 }, (_, k) => [10 ** k, descend([state.x, 10 ** -k], lr).length - 1]), { series: 1 });
      norms.axes({ ...norms.xAxis, max: Math.max(4, path.length - 1) }, norms.yAxis);
      norms.curve((t) => norm(start(), lr, t), { series: 2 });
      norms.dots(path.map(([x, y], t) => [t, Math.hypot(x, y)]), { series: 1, radius: 2.2 });
      const [low, at] = least();
      fig.say(above === 0
        ? "The start lies exactly on the x axis, so that every step keeps y = 0 and the iterates converge to the saddle. The axis is its stable manifold, a set of measure zero: the smallest error in y lets gradient descent escape."
        : `From d = ${number(d, 2)} the iterates need ${path.length - 1} step${path.length === 2 ? "" : "s"} until |y| ≥ 1; the closed form ln(1/d) / ln(1 + η), rounded up, gives ${Math.max(0, Math.ceil(escape(d, lr) - 1e-9))}. `
          + `The gradient is smallest, ${number(low, 3)}, after ${at} step${at === 1 ? "" : "s"}. A start ten times nearer to the axis takes ${number(escape(0.1, lr), 1)} steps more.`);
    });
    fig.expose({ descend, escape, norm, path: () => path });
  });
})();
