// The token that the scaler asks for: taken from the address (#token=..., which a browser never
// sends), kept for this tab alone, and taken out of the address so that it is not read there.

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
