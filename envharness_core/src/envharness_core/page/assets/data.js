"use strict";
// Packed data, and elements that hold text: nothing that a page's data says is ever read as markup.
const chunks = JSON.parse(document.getElementById("chunks").textContent);
const places = JSON.parse(document.getElementById("places").textContent);

async function unpacked(place) {
  const bytes = Uint8Array.from(atob(chunks[place]), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

function make(name, options, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(options || {})) {
    if (key === "on") Object.entries(value).forEach(([event, heard]) => made.addEventListener(event, heard));
    else if (value !== undefined && value !== null && value !== false) made.setAttribute(key, value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

const pill = (kind, words) => make("span", { class: `pill ${kind}` }, words);

function folded(title, ...children) {
  return make("details", {}, make("summary", {}, title), ...children);
}

function pairs(rows) {
  return make("dl", {}, rows.map(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}

function isEmpty(value) {
  return value === null || value === undefined || (typeof value === "object" && Object.keys(value).length === 0);
}

function seconds(value) {
  return value < 1 ? `${(value * 1000).toFixed(value < 0.01 ? 2 : 0)} ms` : `${value.toFixed(1)} s`;
}
