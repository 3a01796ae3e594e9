// This is the only file that creates elements. Texts become text nodes, never HTML.

/** h creates an element: h("p", {class: "note", onclick: f}, "text", other). */
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || (value === false && !name.startsWith("aria-"))) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true && !name.startsWith("aria-") ? "" : String(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false || child === "") continue;
    element.append(child instanceof Node ? child : document.createTextNode(harmless(String(child))));
  }
}

/** fill replaces the content of an element. */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/** say sets the text of an element if it differs, so that screen readers read only new text. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** harmless removes characters that change how other characters are shown: control characters and those that change the text direction. */
export function harmless(text) {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "");
}

const shapes = {
  good: "M8 1.2a6.8 6.8 0 1 0 0 13.6A6.8 6.8 0 0 0 8 1.2zM4.6 8.2l2.3 2.3 4.5-4.8",
  bad: "M5.2 1.2h5.6l4 4v5.6l-4 4H5.2l-4-4V5.2zM5.4 5.4l5.2 5.2M10.6 5.4l-5.2 5.2",
  ill: "M8 1.4 15.2 14.2H.8zM8 6v4M8 12.1v.2",
  busy: "M8 1.2a6.8 6.8 0 1 0 0 13.6A6.8 6.8 0 0 0 8 1.2zM8 4.4V8l2.6 1.8",
  drift: "M8 1 15 8l-7 7-7-7zM5.4 8c1-1.6 1.8-1.6 2.6 0s1.6 1.6 2.6 0",
  faint: "M8 1.2a6.8 6.8 0 1 0 0 13.6A6.8 6.8 0 0 0 8 1.2zM6.3 5.4v5.2M9.7 5.4v5.2",
  plain: "M8 3.4a4.6 4.6 0 1 0 0 9.2 4.6 4.6 0 0 0 0-9.2z",
  open: "M4 6l4 4 4-4", closed: "M6 4l4 4-4 4", back: "M10 3 5 8l5 5",
};

/** icon creates a decorative drawing, which screen readers ignore. */
export function icon(shape, name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", `icon icon-${name ?? shape}`);
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", shapes[shape] ?? shapes.plain);
  svg.append(path);
  return svg;
}
