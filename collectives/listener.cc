#include "collectives/listener.h"

#include <utility>

#include "base/status.h"
#include "collectives/internal/hub.h"

namespace muster::collectives {

absl::StatusOr<std::unique_ptr<Listener>> Listener::Start(ListenerOptions options) {
  auto hub = std::make_shared<internal::Hub>(std::move(options));
  absl::StatusOr<std::vector<std::string>> addresses = hub->Start();
  if (!addresses.ok()) {
    hub->Stop();
    return addresses.status();
  }
  return std::unique_ptr<Listener>(new Listener(std::move(hub), *std::move(addresses)));
}

Listener::~Listener() {
  hub_->Stop();
}

uint64_t Listener::moved() const {
  return hub_->moved();
}

boost::asio::io_context* Listener::loop() {
  return hub_->io();
}

void Listener::Post(std::function<void()> task) {
  hub_->Post(std::move(task));
}

void Listener::RunAndWait(std::function<void()> task) {
  hub_->RunAndWait(std::move(task));
}

}  // namespace muster::collectives
