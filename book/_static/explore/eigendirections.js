/* A loss ½(λ_flat α_flat² + λ_steep α_steep²) of two weights in a rotated eigenbasis, with λ_flat = 1:
   each point has two coefficients, and each coefficient one term of the loss. */
(function () {
  "use strict";
  const { number } = Explore;
  const SPAN = 1.6;
  const LEAST = 0.2; // of the loss, so that the minimum itself does not count

  // --- the mathematics ---

  const eigenvalues = ({ steep }) => ({ flat: 1, steep });

  /** The eigenvectors; the flat one forms the angle `turn` with the horizontal axis. */
  function basis({ turn }) {
    const [c, s] = [Math.cos((turn * Math.PI) / 180), Math.sin((turn * Math.PI) / 180)];
    return { flat: [c, s], steep: [-s, c] };
  }

  const along = (u, a) => u.map((v) => a * v);

  function split(state) {
    const u = basis(state), lambda = eigenvalues(state);
    const part = (name) => {
      const alpha = u[name][0] * state.w[0] + u[name][1] * state.w[1];
      return { alpha, term: (lambda[name] * alpha ** 2) / 2 };
    };
    const [flat, steep] = [part("flat"), part("steep")];
    return { flat, steep, loss: flat.term + steep.term };
  }

  // --- the figure ---

  Explore.figure("eigendirections", (fig) => {
    const { state } = fig;
    Object.assign(state, { w: [1.1, 0.9] });
    fig.slider({ id: "steep", label: "Steep eigenvalue", min: 1, max: 25, step: 1, value: 9, format: String });
    fig.slider({ id: "turn", label: "Angle of the flat eigenvector", min: -90, max: 90, step: 1, value: -25, format: (v) => `${number(v, 0)}°` });
    const plane = fig.plot({
      title: "The weights: drag the point", height: 330, bare: true, x: { min: -SPAN, max: SPAN }, y: { min: -SPAN, max: SPAN },
      alt: () => `Elliptic level curves, and the way from the minimum to the point: ${number(split(state).flat.alpha, 2)} along the flat eigenvector, then ${number(split(state).steep.alpha, 2)} along the steep one.`,
    });
    plane.handle({
      label: "Weights w", pick: true, step: [0.02, 0.02], get: () => state.w,
      set: (x, y) => { state.w = [x, y]; }, describe: (x, y) => `${number(x, 2)}, ${number(y, 2)}, loss ${number(split(state).loss, 2)}`,
    });
    const chart = fig.plot({
      title: "The loss and its two terms", height: 330, x: { min: 0, max: 3, ticks: [[0.5, "flat"], [1.5, "steep"], [2.5, "loss"]] }, y: { min: 0, max: 4 },
      alt: () => `Three bars: a flat term of ${number(split(state).flat.term, 2)}, a steep term of ${number(split(state).steep.term, 2)}, and their sum.`,
    });

    fig.draw(({ steep, w }) => {
      const u = basis(state), { flat: f, steep: s, loss } = split(state);
      for (let k = 1; k <= 12; k += 1) {
        const ring = Array.from({ length: 91 }, (_, i) => [0.2 * k * Math.cos((i * Math.PI) / 45), (0.2 * k * Math.sin((i * Math.PI) / 45)) / Math.sqrt(steep)]);
        plane.curve(ring.map(([a, b]) => [0, 1].map((i) => a * u.flat[i] + b * u.steep[i])), { class: "ex-level" });
      }
      for (const [name, series] of [["flat", 1], ["steep", 2]]) plane.curve([along(u[name], -3), along(u[name], 3)], { series, width: 1.2, dash: true });
      const corner = along(u.flat, f.alpha);
      plane.curve([[0, 0], corner], { series: 1, width: 4 });
      plane.curve([corner, w], { series: 2, width: 4 });
      plane.dots([[0, 0]], { radius: 4, shape: "diamond" });
      chart.axes(chart.xAxis, { ...chart.yAxis, max: [0.5, 1, 2, 4, 8, 16, 32, 64].find((top) => top >= loss) || 128 });
      [[f.term, 1], [s.term, 2], [loss, 0]].forEach(([value, series], k) => {
        chart.area([[k + 0.2, 0], [k + 0.2, value], [k + 0.8, value], [k + 0.8, 0]], { series });
        chart.curve([[k + 0.2, 0], [k + 0.2, value], [k + 0.8, value], [k + 0.8, 0]], { series });
        chart.text([k + 0.5, value], number(value, 2), { series, bold: true, anchor: "middle", dy: -6 });
      });
      const equal = steep > 1 && loss >= LEAST && Math.abs(f.term - s.term) < 0.04 * loss;
      fig.say(`The coefficients are ${number(f.alpha, 2)} (flat) and ${number(s.alpha, 2)} (steep). The loss is ½ · 1 · ${number(f.alpha ** 2, 2)} + ½ · ${steep} · ${number(s.alpha ** 2, 2)} = ${number(loss, 2)}.`
        + (steep === 1 ? " With equal eigenvalues the level curves are circles, and every direction is an eigenvector." : ""),
        equal && "Task solved: both terms are equal.");
    });
    fig.expose({ split: () => split(state), basis: () => basis(state) });
  });
})();
