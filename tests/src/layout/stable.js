// Resolves once every box has kept its place for so many frames; with what still moves after too many.
new Promise(resolve => {
  const STILL = 4, MOST = 240;
  let before = "", still = 0, frames = 0;
  const look = () => {
    const now = [...document.querySelectorAll("main *, header.bar, header.bar > *")]
      .map(e => { const r = e.getBoundingClientRect(); return `${e.localName}.${e.className}:${r.x | 0},${r.y | 0},${r.width | 0},${r.height | 0}`; });
    const text = now.join(";");
    still = text === before ? still + 1 : 0;
    if (still >= STILL) return resolve(null);
    if (++frames >= MOST) {
      const old = new Set(before.split(";"));
      return resolve(now.filter(line => !old.has(line)).slice(0, 5).join("; ") || "the number of elements");
    }
    before = text;
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})
