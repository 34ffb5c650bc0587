// Connects the parts: token -> connection -> store -> views, and orders back.

import { ActionDialog } from "./action_dialog.js";
import { Api } from "./api.js";
import { Connection } from "./connection.js";
import { askForToken } from "./token_dialog.js";
import { followTheme } from "./chart.js";
import { Poller } from "./poller.js";
import { addPolls } from "./polls.js";
import { Store } from "./store.js";
import { takeToken } from "./token.js";
import { addEventsView } from "./events_view.js";
import { addGroupView } from "./group_view.js";
import { addJobView } from "./job_view.js";
import { addLogsView } from "./logs_view.js";
import { addMetricsView } from "./metrics_view.js";
import { addNodesView } from "./nodes_view.js";
import { addPartitionsView } from "./partitions_view.js";
import { addPoliciesView } from "./policies_view.js";
import { addRatesView } from "./rates_view.js";
import { addShardsView } from "./shards_view.js";
import { addSharesView } from "./shares_view.js";
import { addTopicsView } from "./topics_view.js";

const store = new Store();
const api = new Api(takeToken(window.location, window.history, window.sessionStorage));
const poller = new Poller(() => store.live);
const dialog = new ActionDialog(store, api, (poll) => poller.hurry(poll));
let connection = null;

function connect() {
  if (api.token === "") {
    askForToken("", useToken);
    return;
  }
  connection = new Connection(api, {
    onStatus(status) {
      const ended = store.ended;
      store.takeStatus(status);
      // The scaler ends soon, so the next regular question may come too late.
      if (!ended && store.ended) poller.hurry();
    },
    onEvent: (event) => store.takeEvent(event),
    onState(state, detail) {
      const back = state === "live" && !store.live;
      store.setConnection(state, detail);
      if (back) poller.hurry();
      if (state === "denied") askForToken(detail, useToken);
    },
  }, () => store.lastEventId);
  if (document.hidden) connection.pause();
  connection.run();
}

function useToken(token) {
  api.token = token;
  connect();
}

addJobView(store, dialog);
addShardsView(store, dialog, poller);
addRatesView(store, poller);
addSharesView(store);
addMetricsView(store);
addGroupView(store);
addTopicsView(store);
addNodesView(store, dialog);
addPartitionsView(store);
addEventsView(store, api);
addPoliciesView(store, dialog);
addLogsView(store, poller);
addPolls(store, api, poller);
followTheme();

// If a tab already shows a job, opening an address with a token changes only the part behind #.
window.addEventListener("hashchange", () => {
  if (window.location.hash.startsWith("#token=")) window.location.reload();
});

// The browser knows changes of the network before we notice them.
window.addEventListener("online", () => connection?.resume());
document.addEventListener("visibilitychange", () => {
  if (document.hidden) connection?.pause();
  else connection?.resume();
});

poller.start();
connect();
