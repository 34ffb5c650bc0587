#include "collectives/listener.h"

#include <utility>

#include "base/status.h"
#include "collectives/internal/listener_state.h"

namespace muster::collectives {

absl::StatusOr<std::unique_ptr<Listener>> Listener::Start(ListenerOptions options) {
  auto state = std::make_shared<internal::ListenerState>(std::move(options));
  absl::StatusOr<std::vector<std::string>> addresses = state->Start();
  if (!addresses.ok()) {
    state->Stop();
    return addresses.status();
  }
  return std::unique_ptr<Listener>(new Listener(std::move(state), *std::move(addresses)));
}

Listener::~Listener() {
  state_->Stop();
}

uint64_t Listener::moved() const {
  return state_->moved();
}

boost::asio::io_context* Listener::loop() {
  return state_->io();
}

void Listener::Post(std::function<void()> task) {
  state_->Post(std::move(task));
}

void Listener::RunAndWait(std::function<void()> task) {
  state_->RunAndWait(std::move(task));
}

}  // namespace muster::collectives
