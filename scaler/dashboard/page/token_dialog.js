// Asks the user for the token if there is none, or if it was refused.

import { byId, element } from "./dom.js";
import { forgetToken, keepToken } from "./token.js";

/** @param why the scaler's answer; "" if it was not asked yet. @param use gets the token */
export function askForToken(why, use) {
  const dialog = byId("token-dialog");
  forgetToken(window.sessionStorage);
  const input = element("input", {
    type: "password", id: "token-input", autocomplete: "off", spellcheck: "false", required: true,
  });
  const send = () => {
    const token = input.value.trim();
    if (token === "") return;
    keepToken(window.sessionStorage, token);
    dialog.close();
    use(token);
  };
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") send();
  });
  dialog.replaceChildren(
    element("h2", { id: "token-title", text: "Token" }),
    element("p", { class: "problem", role: "alert", text: why && `The scaler refused the token: ${why}`, hidden: !why }),
    element("p", {
      text: "You need the job's token to see the job or to change it. The token is in the file scaler/token of the job's state "
        + "directory. The address that muster dashboard prints contains it.",
    }),
    element("label", { for: "token-input", text: "Token" }),
    input,
    element("div", { class: "dialog-buttons" },
      element("button", { type: "button", class: "primary", id: "token-use", text: "Show the job", click: send })),
  );
  // Without a token, there is nothing to see, so Escape would leave an empty page.
  dialog.addEventListener("cancel", (event) => event.preventDefault());
  if (!dialog.open) dialog.showModal();
  input.focus();
}
