// Texts and fields with too little contrast, disabled ones too: what and where, and how much it is. Colours are those that
// are computed, laid over each other as ancestors and their opacities do; pictures behind a text are not looked at.
(() => {
  const LEAST = 4.5;
  const faults = new Map();
  const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const colour = text => {
    if (!known.has(text)) {
      pen.clearRect(0, 0, 1, 1);
      pen.fillStyle = text;
      pen.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
      known.set(text, [r, g, b, a / 255]);
    }
    return known.get(text);
  };
  const over = ([r, g, b, a], under) => [r, g, b].map((c, i) => c * a + under[i] * (1 - a));
  const luminance = rgb => {
    const [r, g, b] = rgb.map(c => c / 255).map(c => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => {
    const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x);
    return (light + 0.05) / (dark + 0.05);
  };
  // Colours of a text and of its ground as they are seen in the end.
  const seen = (e, text) => {
    const line = [];
    for (let up = e; up; up = up.parentElement) line.unshift(getComputedStyle(up));
    let ground = colour(getComputedStyle(document.body).backgroundColor).slice(0, 3);
    const groups = [];
    for (const s of line) {
      const opacity = parseFloat(s.opacity);
      if (opacity < 1) groups.unshift([opacity, ground]);
      ground = over(colour(s.backgroundColor), ground);
    }
    let ink = over(colour(text), ground);
    for (const [opacity, below] of groups) {
      ink = over([...ink, opacity], below);
      ground = over([...ground, opacity], below);
    }
    return [ink, ground];
  };
  const name = e => `${e.localName}${e.dataset.testid ? `[${e.dataset.testid}]` : ""}${[...e.classList].slice(0, 2).map(c => `.${c}`).join("")}`;
  const look = (e, text, ink) => {
    if (!e.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return;
    for (let up = e; up; up = up.parentElement) if (getComputedStyle(up).clipPath === "inset(50%)" || up.matches(".skip")) return;
    if (parseFloat(getComputedStyle(e).fontSize) === 0) return;
    const found = ratio(...seen(e, ink));
    if (found >= LEAST) return;
    const panel = e.closest("section, header.bar, nav, dialog, [popover]");
    const words = text.replace(/\s+/g, " ").trim().replace(/\d+/g, "0").slice(0, 30);
    faults.set(`contrast: "${words}" in ${panel && panel !== e ? `${name(panel)} … ` : ""}${name(e)}`, `${found.toFixed(2)}:1`);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || e.closest("script, style, noscript, option, title, textarea, svg")) continue;
    look(e, walker.currentNode.data, getComputedStyle(e).color);
  }
  for (const field of document.querySelectorAll("input, select, textarea")) {
    if (/checkbox|radio|range|file|hidden/.test(field.type)) continue;
    const isHint = !field.value && field.placeholder;
    look(field, isHint ? field.placeholder : field.value, getComputedStyle(field, isHint ? "::placeholder" : null).color);
  }
  return [...faults];
})()
