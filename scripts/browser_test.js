// What scripts/browser_test.py reads of the status page. It runs in the page itself.

function channels(colour) {
  const given = /^rgba?\(([^)]*)\)$/.exec(colour);
  if (!given) throw new Error("a colour of another form: " + colour);
  const [red, green, blue, alpha = 1] = given[1].split(/[ ,/]+/).map(Number);
  return [red, green, blue, alpha];
}

function over(front, back, alpha) {
  return [0, 1, 2].map(n => front[n] * alpha + back[n] * (1 - alpha));
}

// Relative luminance, as WCAG 2 defines it.
function luminance(colour) {
  const linear = c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4;
  const [red, green, blue] = colour.map(c => linear(c / 255));
  return .2126 * red + .7152 * green + .0722 * blue;
}

function contrast(one, other) {
  const [most, least] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (most + .05) / (least + .05);
}

// An element and all that it stands in.
function above(element) {
  return element ? [element, ...above(element.parentElement)] : [];
}

// The colour behind an element: backgrounds up to the first that lets nothing through.
function behind(element) {
  const layers = above(element).map(one => channels(getComputedStyle(one).backgroundColor));
  const solid = layers.findIndex(layer => layer[3] === 1);
  if (solid < 0) throw new Error("there is nothing behind a text");
  const put = (back, front) => over(front, back, front[3]);
  return layers.slice(0, solid).reduceRight(put, layers[solid]);
}

function look(element, text, style) {
  const back = behind(element), colour = channels(style.color);
  const alpha = above(element).reduce((all, one) => all * getComputedStyle(one).opacity, colour[3]);
  return {
    text,
    inside: element.closest("table") ? "table" : "body",
    size: parseFloat(style.fontSize),
    contrast: contrast(over(colour, back, alpha), back),
    lines: 1,
    cut: false,
  };
}

// Where the letters of a text are: on how many lines, and whether a box around ends before them.
function place(node, seen) {
  const range = new Range();
  range.selectNodeContents(node);
  const places = [...range.getClientRects()];
  const boxes = above(node.parentElement).filter(box => box !== document.documentElement);
  const end = Math.min(...boxes.map(box => box.getBoundingClientRect().right));
  seen.lines = new Set(places.map(at => Math.round(at.top))).size;
  seen.cut = places.some(at => at.right > end + 1);
}

// Each text that is seen.
function texts() {
  const all = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, text = node.data.trim(), element = node.parentElement;
    if (!text || !element.checkVisibility({ visibilityProperty: true })) continue;
    const seen = look(element, text, getComputedStyle(element));
    place(node, seen);
    all.push(seen);
  }
  for (const input of document.querySelectorAll("input"))
    if (input.placeholder && input.checkVisibility())
      all.push(look(input, input.placeholder, getComputedStyle(input, "::placeholder")));
  return all;
}

// The numbers of the tiles and of the tiers, by what stands beside them; 0 where there is a dash.
function numbers() {
  const found = {}, number = text => parseFloat(text.replace(/,/g, "")) || 0;
  for (const tile of document.querySelectorAll("#tiles > div")) {
    const name = tile.querySelector("span").textContent.replace(/\d.*/, "").trim();
    found[name] = number(tile.querySelector("b").textContent);
  }
  for (const row of document.querySelectorAll("#tiers tr"))
    found["tier " + row.cells[0].textContent] = number(row.cells[1].textContent);
  return found;
}

function refusedStatements() {
  return [...document.querySelectorAll("#refused details")].map(card => ({
    count: card.querySelector("summary b").textContent,
    code: card.querySelector("summary code").textContent,
    shape: card.querySelector("summary code:last-of-type").textContent,
    help: card.querySelector(".help")?.textContent || "",
    more: [...card.querySelectorAll("p")].map(p => p.textContent),
  }));
}

// Tables with the cells of their rows, in order.
function protectedTables() {
  return [...document.querySelectorAll("#protected .card")].map(card => [
    card.querySelector("b").textContent,
    [...card.querySelectorAll("tr")].map(row => [...row.cells].map(cell => cell.textContent)),
  ]);
}

// Keeps every number below zero that is shown from now on, however short.
function watchSigns() {
  const signs = /(?<!\w)-\d\S*/g;
  window.signs = [];
  const look = () => window.signs.push(...(document.body.innerText.match(signs) || []));
  new MutationObserver(look)
    .observe(document.body, { subtree: true, childList: true, characterData: true });
}
