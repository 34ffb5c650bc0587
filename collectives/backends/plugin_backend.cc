#include "collectives/backends/plugin_backend.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "collectives/backends/dynamic_library.h"
#include "muster/collective_plugin.h"

namespace muster::collectives {
namespace {

constexpr size_t kNameBytesMax = 64;

/// Where a plugin puts its reason.
class Reason {
 public:
  muster_plugin_error* error() { return &error_; }
  absl::Status Failed(std::string_view name, std::string_view what) {
    text_.back() = '\0';
    return absl::InternalError(
        fmt::format("{} {}: {}", name, what,
                    text_[0] == '\0' ? "it gives no reason" : Excerpt(text_.data(), text_.size())));
  }

 private:
  std::array<char, 1'024> text_{};
  muster_plugin_error error_{text_.data(), text_.size()};
};

int IsAborted(const void* signal) {
  return static_cast<const AbortSignal*>(signal)->aborted() ? 1 : 0;
}

class PluginCommunicator final : public Communicator {
 public:
  /// `plugin` outlives it.
  explicit PluginCommunicator(const muster_collective_plugin_table* plugin) : plugin_(plugin) {}
  ~PluginCommunicator() override {
    if (communicator_ != nullptr) plugin_->destroy(communicator_);
  }
  PluginCommunicator(const PluginCommunicator&) = delete;
  PluginCommunicator& operator=(const PluginCommunicator&) = delete;

  absl::Status Connect(std::span<const std::byte> id, Backend::Place place,
                       const AbortSignal* signal) {
    Reason reason;
    if (plugin_->connect(reinterpret_cast<const uint8_t*>(id.data()), id.size(), place.rank,
                         place.members, &IsAborted, signal, &communicator_, reason.error()) == 0) {
      return absl::OkStatus();
    }
    return reason.Failed(plugin_->name, "does not connect the members");
  }

  absl::StatusOr<std::span<std::byte>> Buffer(size_t bytes) override {
    constexpr size_t kAlignment = 64;
    if (bytes > capacity_) {
      memory_.reset(new (std::align_val_t(kAlignment)) std::byte[bytes]);
      capacity_ = bytes;
    }
    return std::span(memory_.get(), bytes);
  }

  absl::Status Sum(SumType type, std::span<std::byte> data) override {
    static constexpr muster_plugin_type kTypes[] = {MUSTER_PLUGIN_FLOAT32, MUSTER_PLUGIN_BFLOAT16,
                                                    MUSTER_PLUGIN_INT64};
    Reason reason;
    if (plugin_->sum(communicator_, kTypes[static_cast<size_t>(type)], data.data(),
                     data.size() / ElementBytes(type), reason.error()) == 0) {
      return absl::OkStatus();
    }
    return reason.Failed(plugin_->name, "does not add");
  }

  void Abort() override { plugin_->abort(communicator_); }

 private:
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t(64)); }
  };

  const muster_collective_plugin_table* const plugin_;
  void* communicator_ = nullptr;
  std::unique_ptr<std::byte[], Free> memory_;
  size_t capacity_ = 0;
};

class PluginBackend final : public Backend {
 public:
  explicit PluginBackend(const muster_collective_plugin_table* plugin) : plugin_(plugin) {}

  std::string_view name() const override { return plugin_->name; }

  absl::StatusOr<std::vector<std::byte>> NewId() override {
    std::vector<std::byte> id(kIdBytesMax);
    size_t bytes = 0;
    Reason reason;
    if (plugin_->new_id(reinterpret_cast<uint8_t*>(id.data()), id.size(), &bytes, reason.error()) !=
        0) {
      return reason.Failed(plugin_->name, "makes no id");
    }
    if (bytes == 0 || bytes > id.size()) {
      return absl::InternalError(
          fmt::format("{} gave an id of {} bytes, not 1 to {}", plugin_->name, bytes, id.size()));
    }
    id.resize(bytes);
    return id;
  }

  absl::StatusOr<std::unique_ptr<Communicator>> Connect(std::span<const std::byte> id, Place place,
                                                        const AbortSignal* signal) override {
    auto communicator = std::make_unique<PluginCommunicator>(plugin_);
    MUSTER_RETURN_IF_ERROR(communicator->Connect(id, place, signal));
    return communicator;
  }

 private:
  const muster_collective_plugin_table* const plugin_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<Backend>> OpenPlugin(const std::string& library) {
  MUSTER_ASSIGN_OR_RETURN(const DynamicLibrary loaded,
                          DynamicLibrary::Load(library, /*isolated=*/true));
  std::remove_pointer_t<muster_collective_plugin_function>* get = nullptr;
  MUSTER_RETURN_IF_ERROR(loaded.Find(MUSTER_COLLECTIVE_PLUGIN_FUNCTION, &get));
  const muster_collective_plugin_table* const plugin = get(MUSTER_COLLECTIVE_PLUGIN_VERSION);
  if (plugin == nullptr) {
    return absl::UnimplementedError(fmt::format(
        "{} does not know version {} of the interface of plugins (muster/collective_plugin.h)",
        loaded.path(), MUSTER_COLLECTIVE_PLUGIN_VERSION));
  }
  if (plugin->new_id == nullptr || plugin->connect == nullptr || plugin->sum == nullptr ||
      plugin->abort == nullptr || plugin->destroy == nullptr || plugin->name == nullptr) {
    return absl::InvalidArgumentError(fmt::format("{} lacks functions or a name", loaded.path()));
  }
  const size_t bytes = ::strnlen(plugin->name, kNameBytesMax + 1);
  if (bytes == 0 || bytes > kNameBytesMax || std::string_view(plugin->name) == "NCCL") {
    return absl::InvalidArgumentError(
        fmt::format("{} has the name '{}'; a name has 1 to {} bytes, and is not NCCL",
                    loaded.path(), Excerpt(plugin->name, kNameBytesMax), kNameBytesMax));
  }
  return std::make_shared<PluginBackend>(plugin);
}

}  // namespace muster::collectives
