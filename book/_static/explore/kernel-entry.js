/* One entry of a 3 × 3 kernel: the pixels and the zeros of the border that it meets, which are a
   column of the unrolled matrix [e, ℋ], and that column's mean and standard deviation. */
(function () {
  "use strict";
  const { number, clamp, svg } = Explore;
  const K = 3, SIZE = 5;
  const FIRST = [[0, 2, 7, 4, 1], [3, 8, 9, 6, 2], [5, 9, 4, 7, 3], [1, 6, 8, 5, 2], [0, 3, 5, 2, 1]];

  // --- the mathematics ---

  const range = (n) => Array.from({ length: n }, (_, i) => i);
  const outputs = (stride, padding) => Math.floor((SIZE + 2 * padding - K) / stride) + 1;

  /** What the entry (i, j) meets, one output position after the other: { u, v, value, border },
      with the row u and the column v of the image, from −padding on. */
  function meets(image, i, j, stride, padding) {
    const n = range(outputs(stride, padding));
    return n.flatMap((a) => n.map((b) => {
      const [u, v] = [a * stride + i - padding, b * stride + j - padding];
      const border = u < 0 || v < 0 || u >= SIZE || v >= SIZE;
      return { u, v, border, value: border ? 0 : image[u][v] };
    }));
  }

  function moments(values) {
    const mean = values.reduce((sum, v) => sum + v, 0) / values.length;
    return [mean, Math.sqrt(values.reduce((sum, v) => sum + (v - mean) ** 2, 0) / values.length)];
  }

  /** The largest difference of means for a stride of 1 and the padding that keeps the size. */
  const share = 1 - ((SIZE - (K - 1) / 2) / SIZE) ** 2;

  // --- the figure ---

  Explore.figure("kernel-entry", (fig) => {
    const { state } = fig;
    let columns, channel;
    Object.assign(state, { image: FIRST, i: 2, j: 2, u: 1, v: 2 }); // the entry, and the pixel to change
    const { stride, padding } = { stride: 1, padding: 1 };
    fig.choice({ id: "stride", label: "Stride", options: [[1, "1"], [2, "2"]], value: stride });
    fig.choice({ id: "padding", label: "Rows and columns of zeros on each side", options: [[0, "none"], [1, "1, keeps the size"], [2, "2"]], value: padding });
    const pixel = fig.slider({ id: "value", label: "Value of the framed pixel", min: 0, max: 9, step: 1, value: FIRST[1][2], format: (v) => number(v, 0) });
    fig.button("All pixels 1", () => { state.image = range(SIZE).map(() => Array(SIZE).fill(1)); });
    fig.button("A bright spot", () => { state.image = range(SIZE).map((u) => range(SIZE).map((v) => (u === 2 && v === 2 ? 9 : 0))); });
    fig.button("Back to the beginning", () => fig.assign({ image: FIRST, i: 2, j: 2, u: 1, v: 2, stride, padding }));
    const number2 = (x) => number(x, 2);
    const column = () => 1 + K * state.i + state.j;
    const entry = () => `entry (${state.i}, ${state.j})`;
    const seen = () => columns[column() - 1];

    const left = fig.column();
    const AXIS = { min: 0, max: 1 };
    const image = fig.plot({
      title: "Image and border: choose a pixel", height: 262, bare: true, into: left, x: AXIS, y: AXIS,
      alt: () => `Image of ${SIZE} times ${SIZE} pixels with ${state.padding} rows and columns of zeros around it. Lit are ${seen().length} numbers that ${entry()} meets, ${seen().filter((one) => one.border).length} of them zeros of the border.`,
    });
    const kernel = fig.plot({
      title: "Kernel: choose an entry", height: 150, bare: true, into: left, x: { min: -0.5, max: 2.5 }, y: { min: -2.5, max: 0.5 },
      alt: () => `Kernel of 3 times 3 entries, with the means and standard deviations of their columns: ${columns.map((one) => moments(one.map(({ value }) => value)).map(number2).join(" ± ")).join("; ")}.`,
    });
    const matrix = fig.plot({
      title: "Unrolled matrix [e, ℋ]: choose a column", height: 460, bare: true, x: { min: -0.5, max: 9.5 }, y: AXIS,
      alt: () => `Matrix with one row for each of ${seen().length} positions of the output and ten columns: ones for the bias, and one column for each entry of the kernel. Column ${column()} is lit.`,
    });

    /** A handle that looks like a frame around a cell; returns how to fit it to the cell's size. */
    function frame(plot, series, options) {
      const handle = plot.handle({ series, step: [1, 1], pick: true, ...options });
      handle.node.classList.add("ex-frame");
      handle.node.replaceChildren();
      const parts = ["ex-reach", "ex-ring"].map((kind) => svg("rect", { class: kind }, handle.node));
      return (width, height, above = height / 2) => {
        for (const [name, value] of Object.entries({ x: -width / 2, y: -above, width, height })) parts.forEach((node) => node.setAttribute(name, value));
      };
    }
    const fitPixel = frame(image, 6, {
      label: "Pixel to change", get: () => [state.v, -state.u], describe: () => `row ${state.u}, column ${state.v}, value ${state.image[state.u][state.v]}`,
      set: (x, y) => Object.assign(state, { u: clamp(Math.round(0 - y), 0, SIZE - 1), v: clamp(Math.round(x), 0, SIZE - 1) }),
    });
    const fitEntry = frame(kernel, 2, {
      label: "Entry of the kernel", get: () => [state.j, -state.i], describe: () => `row ${state.i}, column ${state.j}`,
      set: (x, y) => Object.assign(state, { i: clamp(Math.round(0 - y), 0, K - 1), j: clamp(Math.round(x), 0, K - 1) }),
    });
    const fitColumn = frame(matrix, 2, {
      label: "Column of the unrolled matrix", move: "x", get: () => [column(), 0], describe: () => `column ${column()}, ${entry()}`,
      set: (x) => { const c = clamp(Math.round(x), 1, K * K) - 1; Object.assign(state, { i: Math.floor(c / K), j: c % K }); },
    });
    image.svg.addEventListener("keydown", (event) => { // a digit is the value of the pixel
      if (!/^[0-9]$/.test(event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
      state.value = Number(event.key);
      fig.change("value");
    });
    fig.legend([[2, "what the entry meets", "square"], [6, "pixel to change", "square"]]);

    /** A cell with a number; lit, or not. */
    function cell(plot, x, y, words, { lit, size = 12, border = false, line = true } = {}) {
      const [left, top] = plot.pixel([x - 0.5, y + 0.5]), [right, bottom] = plot.pixel([x + 0.5, y - 0.5]);
      const style = `stroke:currentcolor;stroke-opacity:${line ? 0.5 : 0};fill-opacity:${lit ? 0.3 : 0};stroke-width:1`;
      const place = { x: left, y: top, width: right - left, height: bottom - top };
      if (lit || line) svg("rect", { ...place, class: "ex-area ex-s2", style, ...(border ? { "stroke-dasharray": "2 3" } : {}) }, plot.data);
      const text = plot.text([x, y], words, { series: border && !lit ? 7 : 0, anchor: "middle", dy: size * 0.36, bold: lit });
      text.style.fontSize = `${size}px`;
    }

    fig.draw((_, changed) => {
      if (changed === "value") state.image = state.image.map((row, u) => row.map((v, k) => (u === state.u && k === state.v ? state.value : v)));
      fig.assign({ value: state.image[state.u][state.v] });
      columns = range(K * K).map((c) => meets(state.image, Math.floor(c / K), c % K, Number(state.stride), Number(state.padding)));
      channel = moments(state.image.flat());
      const pad = Number(state.padding), last = SIZE + pad;
      const side = (image.box.bottom - image.box.top) / (SIZE + 2 * pad);
      const wide = (image.box.right - image.box.left) / side, middle = (SIZE - 1) / 2;
      image.axes({ min: middle - wide / 2, max: middle + wide / 2 }, { min: 0.5 - last, max: pad + 0.5 });
      const lit = new Set(seen().map(({ u, v }) => `${u} ${v}`));
      for (let u = -pad; u < last; u += 1) {
        for (let v = -pad; v < last; v += 1) {
          const border = u < 0 || v < 0 || u >= SIZE || v >= SIZE;
          cell(image, v, -u, border ? "0" : String(state.image[u][v]), { lit: lit.has(`${u} ${v}`), border, size: 14 });
        }
      }
      fitPixel(side, side);
      columns.forEach((one, c) => {
        const [mean, deviation] = moments(one.map(({ value }) => value));
        cell(kernel, c % K, -Math.floor(c / K), `${number2(mean)} ± ${number2(deviation)}`, { lit: c === column() - 1, size: 13 });
      });
      const [w, h] = [kernel, kernel].map(({ box }, k) => (k ? box.bottom - box.top : box.right - box.left) / K);
      fitEntry(w, h);
      const rows = seen().length;
      matrix.axes(matrix.xAxis, { min: 0.5 - rows, max: 1.8 });
      const tall = (matrix.box.bottom - matrix.box.top) / (rows + 1.3);
      range(10).forEach((c) => {
        const head = matrix.text([c, 0.5], c ? `${Math.floor((c - 1) / K)},${(c - 1) % K}` : "e", { anchor: "middle", dy: -6, bold: c === column() });
        head.style.fontSize = "11px";
        range(rows).forEach((row) => {
          const { value, border } = c ? columns[c - 1][row] : { value: 1, border: false };
          cell(matrix, c, -row, String(value), { lit: c === column(), border, size: Math.min(12, tall), line: false });
        });
      });
      fitColumn((matrix.box.right - matrix.box.left) / 10, rows * tall, tall / 2);
      pixel.input.setAttribute("aria-valuetext", `${state.value}, in row ${state.u} and column ${state.v}`);
      const zeros = seen().filter(({ border }) => border).length, [mean, deviation] = moments(seen().map(({ value }) => value));
      const same = Number(state.stride) === 1 && pad === 1;
      const bound = same ? `; the bound allows ${number2(share * Math.max(...state.image.flat()))}` : "";
      const skip = Number(state.stride) === 2 ? " The entry skips every other row and column." : "";
      fig.say(`Entry (${state.i}, ${state.j}) meets ${rows} numbers, one for each position of the output: ${rows - zeros} pixel${rows - zeros === 1 ? "" : "s"} and ${zeros} zero${zeros === 1 ? "" : "s"} of the border.${skip} They are column ${column()} of [e, ℋ], with mean ${number2(mean)} and standard deviation ${number2(deviation)}; `
        + `the channel has ${number2(channel[0])} and ${number2(channel[1])}. The means differ by ${number2(Math.abs(mean - channel[0]))}${bound}.`);
    });
    fig.expose({
      columns: () => columns.map((one) => one.map(({ value }) => value)), moments: () => columns.map((one) => moments(one.map(({ value }) => value))),
      channel: () => channel, bound: () => share * Math.max(...state.image.flat()), seen: () => seen(),
    });
  });
})();
