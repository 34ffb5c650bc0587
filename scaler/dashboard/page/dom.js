// Makes elements from data. Text is always set as text, so nothing that comes over the network is parsed as HTML.

export function byId(id) {
  return document.getElementById(id);
}

/** `properties` are attributes, `class`, `text`, and functions under the name of their event ("click"). */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "text") made.textContent = value;
    else if (typeof value === "function") made.addEventListener(name, value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** Does nothing if the text is the same, so that screen readers and selections are not disturbed. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setAttribute(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

export function show(node, visible) {
  if (node.hidden === visible) node.hidden = !visible;
}

/**
 * Gives `parent` one child per item, in order. Present children are moved and changed, so focus and open
 * details stay. `make(item)` returns a node, and `update(node, item)` fills it in.
 */
export function reconcile(parent, items, keyOf, make, update) {
  const old = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  let at = parent.firstElementChild;
  for (const item of items) {
    const key = String(keyOf(item));
    let node = old.get(key);
    if (node) {
      old.delete(key);
    } else {
      node = make(item);
      node.dataset.key = key;
    }
    update(node, item);
    if (node === at) {
      at = at.nextElementSibling;
    } else {
      parent.insertBefore(node, at);
    }
  }
  for (const gone of old.values()) gone.remove();
}

/** Shows [name, text] as pairs of <dt> and <dd>. Present elements are kept. */
export function fillFigures(list, pairs) {
  reconcile(
    list,
    pairs,
    ([name]) => name,
    ([name]) => element("div", {}, element("dt", { text: name }), element("dd")),
    (node, [, text]) => setText(node.lastChild, text),
  );
}

/** Sets the options of a <select>, by value. The chosen one stays chosen if it is still among them. */
export function fillOptions(select, options) {
  reconcile(
    select,
    options,
    ([value]) => value,
    ([value]) => element("option", { value }),
    (node, [, text]) => setText(node, text),
  );
}
