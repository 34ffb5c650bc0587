// Shows what an order will do before it is given, and then the event that it caused and its outcome.

import { byId, element, setText, show } from "./dom.js";
import { eventCard } from "./event_card.js";

export class ActionDialog {
  /** @param hurry (poll) => asks at once for what the order may have changed */
  constructor(store, api, hurry) {
    this.store = store;
    this.api = api;
    this.hurry = hurry;
    this.dialog = byId("order");
    this.event = null;
    this.dialog.addEventListener("close", () => {
      this.event = null;
      if (this.opener?.isConnected) this.opener.focus();
    });
    store.view(["events", "connection"], () => this.follow());
  }

  /** A button that opens the dialog for `spec()`. It is disabled while that is null. */
  button(text, label, spec) {
    return element("button", {
      type: "button", text, "aria-label": label, "aria-haspopup": "dialog",
      click: (event) => {
        const order = spec();
        if (order) this.open(order, event.currentTarget);
      },
    });
  }

  open(order, opener) {
    this.order = order;
    this.opener = opener;
    this.event = null;
    this.inputs = order.fields.map((field) => this.input(field));
    this.problem = element("p", { class: "problem", role: "alert", hidden: true });
    this.result = element("div", { class: "result", role: "status" });
    this.cancel = element("button", { type: "button", id: "order-close", text: "Do nothing", click: () => this.dialog.close() });
    this.confirm = element("button", {
      type: "button", id: "order-confirm", class: order.danger ? "danger" : "primary", text: order.confirm,
      click: () => this.send(),
    });
    this.form = element("div", {},
      element("ul", { class: "facts" }, ...order.facts.map((text) => element("li", { text }))),
      ...this.inputs.map(({ label }) => label));
    this.title = element("h2", { id: "order-title", text: order.title });
    this.dialog.replaceChildren(
      this.title,
      this.form, this.problem, this.result,
      element("div", { class: "dialog-buttons" }, this.cancel, this.confirm),
    );
    this.follow();
    this.dialog.showModal();
    (this.inputs[0]?.input || this.cancel).focus();
  }

  input(field) {
    const { label: text, ...attributes } = field;
    const input = element("input", { autocomplete: "off", ...attributes });
    input.addEventListener("keydown", (event) => {
      // If an order cannot be undone, Enter does not give it: the user must press its button.
      if (event.key === "Enter" && !this.order.danger) this.send();
    });
    return { name: field.name, input, label: element("label", { class: "field", text }, input) };
  }

  refuse(message) {
    setText(this.problem, message);
    show(this.problem, message !== "");
  }

  async send() {
    if (this.confirm.disabled || this.event) return;
    const wrong = this.inputs.find(({ input }) => !input.checkValidity());
    if (wrong) {
      this.refuse(`${wrong.label.firstChild.textContent}: ${wrong.input.validationMessage}`);
      wrong.input.focus();
      return;
    }
    const order = this.order;
    const body = order.body(Object.fromEntries(this.inputs.map(({ name, input }) => [name, input.value.trim()])));
    const check = order.check ? order.check(body) : "";
    this.refuse(check);
    if (check !== "") return;
    this.confirm.disabled = true;
    try {
      const event = await this.api.act(`/api/v1/${order.path}`, body);
      this.hurry(order.poll);
      if (this.order === order && this.dialog.open) this.given(event);
    } catch (error) {
      if (this.order !== order) return;
      this.refuse(["The order was not given: " + error.message, ...(error.fields || [])].join("\n"));
      this.confirm.disabled = false;
    }
  }

  given(event) {
    this.event = event;
    setText(this.title, this.order.confirm);
    this.form.hidden = true;
    this.confirm.hidden = true;
    setText(this.cancel, "Close");
    this.cancel.focus();
    this.waiting = element("p", { class: "hint", text: this.order.settled ? "Done." : "The order is being carried out. Its outcome will appear here and in the events." });
    this.outcomes = element("div");
    this.result.replaceChildren(element("h3", { text: "The order" }), eventCard(event), this.waiting, this.outcomes);
    this.follow();
  }

  /** Shows outcomes of our event, and notices whether orders can be given at all. */
  follow() {
    if (!this.confirm) return;
    if (!this.event) {
      const lost = !this.store.live;
      if (lost) this.refuse("The page has no connection to the scaler now.");
      else if (this.confirm.disabled && this.problem.textContent.startsWith("The page has no connection")) this.refuse("");
      if (lost || this.problem.hidden) this.confirm.disabled = lost;
      return;
    }
    const effects = this.store.effects.get(this.event.id) || [];
    if (effects.length === this.outcomes.childElementCount) return;
    setText(this.waiting, "The outcome:");
    this.outcomes.replaceChildren(...effects.map((event) => eventCard(event)));
  }
}
