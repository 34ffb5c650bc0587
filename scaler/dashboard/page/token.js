// The token that the scaler asks for. It comes from the address (#token=..., which a browser never
// sends) and is kept for this tab alone. It is removed from the address, so that nobody reads it there.

const kKey = "muster-token";

export function takeToken(location, history, storage) {
  const match = /^#token=(.+)$/.exec(location.hash);
  if (match) {
    storage.setItem(kKey, decodeURIComponent(match[1]));
    history.replaceState(null, "", location.pathname + location.search);
  }
  return storage.getItem(kKey) || "";
}

export function keepToken(storage, token) {
  storage.setItem(kKey, token);
}

export function forgetToken(storage) {
  storage.removeItem(kKey);
}
