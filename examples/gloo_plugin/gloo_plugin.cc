// A plugin for synchronous groups (muster/collective_plugin.h): Gloo adds the gradients, over TCP.
// It shows how a library of your own becomes part of a group. README.md says how to use it.
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "muster/collective_plugin.h"

namespace {

constexpr std::chrono::milliseconds kLookEvery{5};
/// Gloo cannot end a sum that waits for a dead member. After this time it gives up by itself.
constexpr std::chrono::seconds kTimeout{30};

int Fail(muster_plugin_error* error, const std::string& why) {
  std::snprintf(error->text, error->capacity, "%s", why.c_str());
  return 1;
}

std::string Setting(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

/// Where the members of a communicator find each other: files of a folder that all of them see.
class FolderStore final : public gloo::rendezvous::Store {
 public:
  FolderStore(std::filesystem::path folder, int (*aborted)(const void*), const void* context)
      : folder_(std::move(folder)), aborted_(aborted), context_(context) {
    std::filesystem::create_directories(folder_);
  }

  void set(const std::string& key, const std::vector<char>& data) override {
    const std::filesystem::path path = PathOf(key);
    const std::filesystem::path draft = path.string() + ".draft";
    std::ofstream file(draft, std::ios::binary);
    file.write(data.data(), static_cast<std::streamsize>(data.size()));
    file.close();
    if (!file) throw std::runtime_error("cannot write " + draft.string());
    std::filesystem::rename(draft, path);
  }
  std::vector<char> get(const std::string& key) override {
    wait({key});
    std::ifstream file(PathOf(key), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void wait(const std::vector<std::string>& keys) override { wait(keys, kTimeout); }
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override {
    const auto end = std::chrono::steady_clock::now() + timeout;
    for (const std::string& key : keys) {
      while (!std::filesystem::exists(PathOf(key))) {
        if (aborted_(context_) != 0) throw std::runtime_error("the attempt is over");
        if (std::chrono::steady_clock::now() > end) {
          throw std::runtime_error("a member did not write " + PathOf(key).string());
        }
        std::this_thread::sleep_for(kLookEvery);
      }
    }
  }

 private:
  std::filesystem::path PathOf(const std::string& key) const {
    std::string name = key;
    for (char& c : name) c = c == '/' ? '-' : c;
    return folder_ / name;
  }

  const std::filesystem::path folder_;
  int (*const aborted_)(const void*);
  const void* const context_;
};

struct Communicator {
  ~Communicator() {
    std::error_code ignored;
    // The member of rank 0 cleans up; by now nobody looks for others there.
    if (context != nullptr && context->rank == 0) std::filesystem::remove_all(folder, ignored);
  }
  std::shared_ptr<gloo::rendezvous::Context> context;
  std::filesystem::path folder;
  uint32_t sums = 0;
};

void AddBfloat16(void* to, const void* a, const void* b, size_t count) {
  const auto* const x = static_cast<const uint16_t*>(a);
  const auto* const y = static_cast<const uint16_t*>(b);
  auto* const sum = static_cast<uint16_t*>(to);
  const auto wide = [](uint16_t half) { return std::bit_cast<float>(uint32_t{half} << 16); };
  for (size_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<uint32_t>(wide(x[i]) + wide(y[i]));
    // To nearest, ties to even.
    sum[i] = static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
  }
}

template <typename T>
void AllReduce(Communicator* communicator, void* data, size_t count,
               gloo::AllreduceOptions::Func add) {
  gloo::AllreduceOptions options(communicator->context);
  options.setOutput(static_cast<T*>(data), count);
  options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
  options.setReduceFunction(std::move(add));
  options.setTag(communicator->sums++);
  options.setTimeout(kTimeout);
  gloo::allreduce(options);
}

// ---- the functions of the plugin; none lets an exception out ----

int NewId(uint8_t* id, size_t capacity, size_t* bytes, muster_plugin_error* error) try {
  std::random_device random;
  char text[64];
  const int length = std::snprintf(text, sizeof(text), "muster-gloo-%08x%08x%08x%08x", random(),
                                   random(), random(), random());
  if (length <= 0 || static_cast<size_t>(length) > capacity) return Fail(error, "no room");
  std::memcpy(id, text, static_cast<size_t>(length));
  *bytes = static_cast<size_t>(length);
  return 0;
} catch (const std::exception& e) {
  return Fail(error, e.what());
}

int Connect(const uint8_t* id, size_t bytes, uint32_t rank, uint32_t members,
            int (*aborted)(const void*), const void* context, void** communicator,
            muster_plugin_error* error) try {
  const std::string name(reinterpret_cast<const char*>(id), bytes);
  const std::filesystem::path folder =
      std::filesystem::path(Setting("MUSTER_GLOO_FOLDER", "/tmp")) / name;
  FolderStore store(folder, aborted, context);
  gloo::transport::tcp::attr attr;
  attr.hostname = Setting("MUSTER_GLOO_HOST", "127.0.0.1");
  auto device = gloo::transport::tcp::CreateDevice(attr);
  auto made = std::make_unique<Communicator>();
  made->context = std::make_shared<gloo::rendezvous::Context>(static_cast<int>(rank),
                                                              static_cast<int>(members));
  made->folder = folder;
  made->context->setTimeout(kTimeout);
  made->context->connectFullMesh(store, device);
  *communicator = made.release();
  return 0;
} catch (const std::exception& e) {
  return Fail(error, e.what());
}

int Sum(void* communicator, muster_plugin_type type, void* data, size_t count,
        muster_plugin_error* error) try {
  auto* const to = static_cast<Communicator*>(communicator);
  switch (type) {
    case MUSTER_PLUGIN_FLOAT32:
      AllReduce<float>(
          to, data, count,
          static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
      break;
    case MUSTER_PLUGIN_BFLOAT16:
      AllReduce<uint16_t>(to, data, count, &AddBfloat16);
      break;
    case MUSTER_PLUGIN_INT64:
      // Unsigned, because signed numbers must not wrap around in C++.
      AllReduce<uint64_t>(
          to, data, count,
          static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<uint64_t>));
      break;
  }
  return 0;
} catch (const std::exception& e) {
  return Fail(error, e.what());
}

/// Closes the connections, so that other members notice. A sum here may wait for kTimeout.
void Abort(void* communicator) try {
  static_cast<Communicator*>(communicator)->context->closeConnections();
} catch (const std::exception&) {
  // The connections are broken already.
}

void Destroy(void* communicator) {
  delete static_cast<Communicator*>(communicator);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const muster_collective_plugin_table*
muster_collective_plugin(uint32_t version) {
  static constexpr muster_collective_plugin_table kPlugin = {
      .name = "Gloo",
      .new_id = &NewId,
      .connect = &Connect,
      .sum = &Sum,
      .abort = &Abort,
      .destroy = &Destroy,
  };
  return version == MUSTER_COLLECTIVE_PLUGIN_VERSION ? &kPlugin : nullptr;
}
