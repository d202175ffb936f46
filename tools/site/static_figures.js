(ink) => {
  const IDLE = {
    fill: "", "fill-opacity": "1", stroke: "none", "stroke-opacity": "1", "stroke-width": "1px",
    "stroke-dasharray": "none", "stroke-linejoin": "miter", "font-size": "", "font-weight": "400", "text-anchor": "start",
  };
  const safe = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/"/g, "'");

  // an element with the colors that the style sheet gives it, which a picture cannot load
  function write(node) {
    if (node.matches(".ex-reach")) return "";
    const style = getComputedStyle(node);
    const kept = [...node.attributes].filter(({ name }) => !/^(class|style|tabindex|role|aria-.*)$/.test(name));
    const found = Object.fromEntries(kept.map(({ name, value }) => [name, value]));
    if (node.matches("path, line, rect, circle, text")) {
      for (const [name, idle] of Object.entries(IDLE)) {
        const words = /^(font|text)/.test(name) && !node.matches("text");
        const line = /^stroke-/.test(name) && style.stroke === "none";
        const value = style.getPropertyValue(name);
        if (!words && !line && value !== idle) found[name] = value;
      }
    }
    const attributes = Object.entries(found).map(([name, value]) => ` ${name}="${safe(value)}"`).join("");
    const inside = node.childElementCount ? [...node.children].map(write).join("") : safe(node.textContent);
    return `<${node.localName}${attributes}>${inside}</${node.localName}>`;
  }

  const stage = document.querySelector(".ex-live");
  const frame = stage.querySelector(".ex-panels").getBoundingClientRect();
  const round = (x) => x.toFixed(0);
  let [right, bottom] = [0, 0];
  const parts = [...stage.querySelectorAll(".ex-panel")].map((panel) => {
    const plot = panel.querySelector("svg");
    const title = panel.querySelector(".ex-title");
    const at = plot.getBoundingClientRect();
    const [x, y] = [at.left - frame.left, at.top - frame.top];
    right = Math.max(right, x + at.width);
    bottom = Math.max(bottom, y + at.height);
    const words = title ? `<text x="${round(x)}" y="${round(y - 8)}" font-size="14" font-weight="600" fill="${ink}">${safe(title.textContent.split(":")[0])}</text>` : "";
    const place = `x="${round(x)}" y="${round(y)}" width="${round(at.width)}" height="${round(at.height)}"`;
    return `${words}<svg ${place} viewBox="${plot.getAttribute("viewBox")}">${[...plot.children].map(write).join("")}</svg>`;
  });

  // the legend: beside a single panel, otherwise below
  const beside = right < 500;
  const names = [...stage.querySelectorAll(".ex-swatch")].map((swatch, i) => {
    const [x, y] = beside ? [right + 30, 30 + 24 * i] : [10 + 180 * (i % 4), bottom + 24 + 22 * Math.floor(i / 4)];
    const picture = `<svg x="${round(x)}" y="${round(y - 9)}" width="26" height="12">${[...swatch.children].map(write).join("")}</svg>`;
    return [x, y, `${picture}<text x="${round(x + 34)}" y="${round(y + 2)}" font-size="13" fill="${ink}">${safe(swatch.parentNode.textContent)}</text>`];
  });
  for (const [x, y, text] of names) {
    right = Math.max(right, x + 180);
    bottom = Math.max(bottom, y + 10);
    parts.push(text);
  }
  const size = `width="${round(right)}" height="${round(bottom)}" viewBox="0 0 ${round(right)} ${round(bottom)}"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="sans-serif">${parts.join("")}</svg>`;
}
