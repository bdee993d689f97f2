// What a person could not read on this page, as it is laid out now: what and where, and by how much, of each fault. Text
// is measured by the rectangles of its ranges. What is painted on a canvas is out of reach: of charts, only the box is.
(() => {
  const faults = [];
  const style = new Map();
  const css = e => style.get(e) ?? (style.set(e, getComputedStyle(e)), style.get(e));
  // Half a pixel is rounding.
  const SLACK = 1;
  // Beside the box that it belongs to, a text stands on the edge of another or beyond it.
  const SPILL = 2;
  const page = document.documentElement;

  const name = e => {
    const own = e.dataset?.testid ? `[${e.dataset.testid}]` : e.id ? `#${e.id}` : "";
    const classes = [...e.classList].slice(0, 2).map(c => `.${c}`).join("");
    return e.localName + own + classes;
  };
  const where = e => {
    const panel = e.closest("section, header.bar, nav, dialog, [popover]");
    return panel && panel !== e ? `${name(panel)} … ${name(e)}` : name(e);
  };
  // Figures go on; the fault is the same.
  const quote = text => {
    const words = text.replace(/\s+/g, " ").trim().replace(/\d+/g, "0");
    return `"${words.length > 40 ? `${words.slice(0, 39)}…` : words}"`;
  };
  const say = (kind, e, text, more) => faults.push([`${kind}: ${quote(text)} in ${where(e)}`, more]);

  const overlap = (a, b) => {
    const w = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const h = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    return w > SLACK && h > SLACK ? [w, h] : null;
  };
  // Hidden on purpose: for screen readers, or until it is pointed at.
  const isHidden = e => {
    if (!e.checkVisibility({ opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true })) return true;
    for (let up = e; up; up = up.parentElement) {
      const s = css(up);
      if (s.clipPath === "inset(50%)" || up.matches(".skip:not(:focus)")) return true;
    }
    return parseFloat(css(e).fontSize) === 0;
  };
  // Where what is inside an element is cut, and whether it can be scrolled to.
  const clipping = s => {
    const paint = /paint|strict|content/.test(s.contain);
    const axis = value => (/auto|scroll/.test(value) ? "scroll" : value !== "visible" || paint ? "clip" : "");
    return [axis(s.overflowX), axis(s.overflowY)];
  };
  const isBlockFor = (s, position) =>
    s.transform !== "none" || s.filter !== "none" || /paint|strict|content|layout/.test(s.contain) ||
    s.containerType !== "normal" || (position === "absolute" && s.position !== "static");
  // The ancestors that can cut an element, from the inside out.
  const clippers = new Map();
  const clippersOf = e => {
    if (clippers.has(e)) return clippers.get(e);
    const found = [];
    let up = e, s = css(e), leaves = null;
    while (up && up !== page && up !== document.body) {
      if (!leaves || isBlockFor(s, leaves)) {
        leaves = null;
        const [x, y] = clipping(s);
        if ((x || y) && s.display !== "inline") found.push({ e: up, x, y, s });
        if (s.position === "absolute" || s.position === "fixed") leaves = s.position;
      }
      up = up.parentElement;
      if (up) s = css(up);
    }
    clippers.set(e, found);
    return found;
  };
  const inner = e => {
    const r = e.getBoundingClientRect();
    const left = r.left + e.clientLeft, top = r.top + e.clientTop;
    return { left, top, right: left + e.clientWidth, bottom: top + e.clientHeight };
  };
  const isTold = (e, text) => {
    const words = text.replace(/\s+/g, " ").trim();
    for (let up = e, n = 0; up && n < 4; up = up.parentElement, n++)
      for (const key of ["title", "aria-label"])
        if (up.getAttribute(key)?.replace(/\s+/g, " ").includes(words)) return true;
    return false;
  };
  // Cuts a rectangle as the ancestors do; says what is lost for good. Gives what is in sight, or nothing.
  const cut = (e, rect, text) => {
    let r = { ...rect };
    for (const c of clippersOf(e)) {
      const box = inner(c.e);
      const lost = [];
      if (c.x === "clip" && (r.left < box.left - SLACK || r.right > box.right + SLACK))
        lost.push(`${Math.round(Math.max(box.left - r.left, r.right - box.right))} px wide`);
      if (c.y === "clip" && (r.top < box.top - SLACK || r.bottom > box.bottom + SLACK))
        lost.push(`${Math.round(Math.max(box.top - r.top, r.bottom - box.bottom))} px high`);
      if (c.x === "scroll" && r.left - box.left + c.e.scrollLeft < -SLACK) lost.push("left of where one can scroll");
      if (c.y === "scroll" && r.top - box.top + c.e.scrollTop < -SLACK) lost.push("above where one can scroll");
      const isRoomy = (c.x !== "scroll" || c.e.clientWidth >= 40) && (c.y !== "scroll" || c.e.clientHeight >= Math.min(24, rect.bottom - rect.top));
      if (!isRoomy) lost.push(`room of ${c.e.clientWidth}×${c.e.clientHeight} px to scroll in`);
      if (lost.length && !(c.s.textOverflow === "ellipsis" && isTold(e, text))) {
        say("cut", e, text, `${lost.join(" and ")} by ${name(c.e)}`);
        return null;
      }
      r = { left: Math.max(r.left, box.left), top: Math.max(r.top, box.top), right: Math.min(r.right, box.right), bottom: Math.min(r.bottom, box.bottom) };
      if (r.right - r.left < 2 || r.bottom - r.top < 2) return null;
    }
    const x = scrollX + r.left, right = scrollX + r.right;
    const isFixed = clippersOf(e).length === 0 && (() => { for (let up = e; up; up = up.parentElement) if (css(up).position === "fixed") return true; return false; })();
    const beyond = x < -SLACK || right > innerWidth + SLACK || scrollY + r.top < -SLACK || (isFixed && r.bottom > innerHeight + SLACK);
    const deep = scrollY + r.bottom > page.scrollHeight + SLACK || (css(page).overflowY === "hidden" && r.bottom > innerHeight + SLACK);
    if (beyond || deep) { say("outside", e, text, "beyond the window's edge"); return null; }
    return r;
  };

  // What tells one thing from another is of no use with its end cut off, wherever the whole is said.
  const WHOLE = "th .of-pool";
  // The nearest box that lines of text break in.
  const blockOf = e => { while (/^(inline|contents)$/.test(css(e).display)) e = e.parentElement; return e; };

  // Under load requests in flight have three digits.
  for (const figure of document.querySelectorAll(".strip-figures b")) if (figure.firstChild) figure.firstChild.data = "102";

  // Every piece of text that is shown, line by line.
  const pieces = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  while (walker.nextNode()) {
    const node = walker.currentNode, e = node.parentElement;
    if (!node.data.trim() || e.closest("script, style, noscript, option, title, textarea") || isHidden(e)) continue;
    range.selectNodeContents(node);
    const size = parseFloat(css(e).fontSize);
    const lines = [...range.getClientRects()].filter(r => r.width >= 1);
    // Where dots take the place of the end, the browser gives the whole and what is left of it.
    const isShort = lines.some((a, i) => lines.some((b, j) => j > i && overlap(a, b)));
    if (isShort && (e.matches(WHOLE) || !isTold(e, node.data))) { say("cut", e, node.data, "its end is dots"); continue; }
    const block = blockOf(e), room = block.getBoundingClientRect();
    const beyond = Math.max(...lines.map(r => Math.max(r.right - room.right, room.left - r.left)));
    if (!isShort && beyond > SPILL) say("spills", e, node.data, `${Math.round(beyond)} px beyond ${name(block)}`);
    for (const r of lines) {
      // A line's rectangle is as high as its font may ever be; the ink is about as high as the font's size.
      const spare = Math.max(0, (r.height - size * 0.8) / 2);
      const ink = { left: r.left, right: r.right, top: r.top + spare, bottom: r.bottom - spare };
      const before = faults.length;
      const seen = cut(e, ink, node.data);
      if (faults.length > before) break;
      if (seen) pieces.push({ e, text: node.data, ...seen });
      if (isShort) break;
    }
  }

  // What is written in fields is no text node.
  const pen = document.createElement("canvas").getContext("2d");
  for (const field of document.querySelectorAll("input, select")) {
    if (isHidden(field) || /checkbox|radio|range|file|hidden/.test(field.type)) continue;
    const s = css(field);
    const text = field.localName === "select" ? field.selectedOptions[0]?.label ?? "" : field.value || field.placeholder;
    pen.font = `${s.fontStyle} ${s.fontWeight} ${s.fontSize} ${s.fontFamily}`;
    // A select's arrow takes room, and so do the arrows of a number, which are shown when it is pointed at.
    const arrow = field.localName === "select" || field.type === "number" ? 16 : 0;
    const room = field.clientWidth - parseFloat(s.paddingLeft) - parseFloat(s.paddingRight) - arrow;
    const missing = pen.measureText(text).width - room;
    if (missing > SLACK && !(isTold(field, text) && s.textOverflow === "ellipsis")) say("cut", field, text, `${Math.round(missing)} px too narrow`);
    else cut(field, field.getBoundingClientRect(), text || field.type);
  }

  // What can be scrolled sideways hides its right side until somebody finds that out.
  for (const e of document.querySelectorAll("main *")) {
    const hidden = e.scrollWidth - e.clientWidth;
    if (e.clientWidth > 0 && hidden > SLACK && clipping(css(e))[0] === "scroll" && !e.matches("input, textarea, pre") && !isHidden(e)) {
      say("scrolls sideways", e, "", `${hidden} px beyond`);
    }
  }

  // Boxes of pictures: canvases, and charts that draw theirs later.
  const pictures = [];
  for (const e of document.querySelectorAll("canvas, .chart-box, .chart, svg[role=img]")) {
    const r = e.getBoundingClientRect();
    if (isHidden(e) || r.width < 2 || r.height < 2) continue;
    const seen = cut(e, r, "a picture");
    if (seen) pictures.push({ e, ...seen });
  }
  // Of the curves, names at their ends and the axis take 194 px of the width, marks and the axis up to 120 of the height: what is
  // left is the plot, 220 px high.
  const LEAST_PX = [[".icicle-box", 120, 60], [".cmp-chart", 314, 340], [".mem-bar", 40, 8], [".chart-box", 80, 60]];
  for (const [selector, width, height] of LEAST_PX) {
    for (const e of document.querySelectorAll(selector)) {
      // Where a rule of the style sheet takes it away, it has no size; what is closed or switched off is meant to be gone.
      if (e.closest("details:not([open])") || !e.closest("section")?.checkVisibility()) continue;
      const r = e.getBoundingClientRect();
      if (r.width < width || r.height < height) say("small", e, "a picture", `${Math.round(r.width)}×${Math.round(r.height)} px of ${width}×${height}`);
    }
  }
  // On a telephone every row above the panels is one less of them.
  const MOST_ROWS = 1;
  const bar = document.querySelector("header.bar");
  if (bar && innerWidth <= 500) {
    const parts = [...bar.querySelectorAll(":scope > :not(.facts, nav), .fact")].filter(e => !isHidden(e));
    const middles = parts.map(e => e.getBoundingClientRect()).filter(r => r.height > 0).map(r => (r.top + r.bottom) / 2).sort((a, b) => a - b);
    // Half a line apart is another row.
    const rows = middles.filter((y, at) => at === 0 || y - middles[at - 1] > 8).length;
    if (rows > MOST_ROWS) say("rows", bar, "the header", `${rows} rows, ${Math.round(bar.getBoundingClientRect().height)} px`);
  }

  // Where two things lie on each other, the one in front has a ground of its own only in what opens above the page.
  const ABOVE = "dialog, [popover], [role=tooltip], .minimap, .to-top, .held-note, .full, .found-list";
  const layer = e => e.closest(ABOVE);
  pieces.sort((a, b) => a.left - b.left);
  const inSight = pieces.filter(p => p.bottom > 0 && p.top < innerHeight + 4000);
  for (let i = 0; i < inSight.length; i++) {
    const a = inSight[i];
    for (let j = i + 1; j < inSight.length && inSight[j].left < a.right - SLACK; j++) {
      const b = inSight[j], size = overlap(a, b);
      if (!size || layer(a.e) !== layer(b.e)) continue;
      say("overlap", a.e, a.text, `${Math.round(size[0])}×${Math.round(size[1])} px with ${quote(b.text)} in ${where(b.e)}`);
    }
  }
  for (const p of pictures) {
    for (const t of inSight) {
      const size = overlap(p, t);
      // Words that are part of the picture: its lanes' heads, and what it says while it is empty.
      if (!size || layer(t.e) !== layer(p.e) || p.e.contains(t.e)) continue;
      if (t.e.closest(".on-picture, .icicle-box > .empty, .chart-box > .empty")) continue;
      say("overlap", t.e, t.text, `${Math.round(size[0])}×${Math.round(size[1])} px with the picture ${where(p.e)}`);
    }
  }
  // Behind something: asked of the browser, where it would hit.
  for (const t of inSight) {
    const y = (t.top + t.bottom) / 2, w = t.right - t.left;
    for (const x of [t.left + Math.min(2, w / 2), t.left + w / 2, t.right - Math.min(2, w / 2)]) {
      if (x < 0 || y < 0 || x >= innerWidth || y >= innerHeight) continue;
      const front = document.elementFromPoint(x, y);
      if (!front || front.contains(t.e) || t.e.contains(front) || layer(front) !== layer(t.e)) continue;
      const s = css(front);
      const isSolid = !/rgba\(.*, 0\)|transparent/.test(s.backgroundColor) || /^(canvas|img|input|select|textarea)$/.test(front.localName);
      if (parseFloat(s.opacity) === 0 || !isSolid) continue;
      say("behind", t.e, t.text, `behind ${where(front)}`);
      break;
    }
  }

  if (page.scrollWidth > innerWidth + SLACK) say("wide", document.body, "the page", `it can be scrolled sideways by ${page.scrollWidth - innerWidth} px`);
  return [...new Map(faults)];
})()
