// Writes whole numbers to a Kafka topic in transactions, some of which it aborts: what an aborted
// transaction wrote no committed one has, so that one such record in the weights shows. Brokers may
// die meanwhile. For the tests of jobs that learn from topics; kHelp says the rest.

#include <librdkafka/rdkafka.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace muster {
namespace {

constexpr char kHelp[] =
    "Usage: topic_tool --brokers HOST:PORT,... --topic NAME [--partitions N] [--id TEXT]\n"
    "                  [--transactions N] [--records N] [--abort-every K] [--pause-ms N]\n"
    "                  [--open-ms N] [--keys N] [--first N] [--aborted-first N]\n\n"
    "Writes whole numbers as text to a topic, --records (40) in a transaction, and aborts every\n"
    "K-th transaction. Ends after --transactions of them, or with its standard input, and says\n"
    "how many there were, as JSON: an unsure one may be committed or not.\n\n"
    "  --id TEXT          transactional.id; another process with the same one ends this one\n"
    "  --pause-ms N       between transactions\n"
    "  --open-ms N        how long one stays open when its records are written\n"
    "  --keys N           numbers with the same remainder have the same key, and partition (1000)\n"
    "  --first N          committed numbers begin here (0); one in ten occurs more than once\n"
    "  --aborted-first N  and those of aborted transactions here (500000000)\n\n"
    "Example: topic_tool --brokers 127.0.0.1:9092 --topic t --transactions 10 --abort-every 4\n";

constexpr int kCallMs = 5'000;
constexpr std::chrono::seconds kTroubleMax{120};
constexpr int64_t kHotEvery = 10, kHot = 97;

struct Options {
  std::string brokers, topic, id = "topic-tool";
  int64_t partitions = 1, transactions = 0, records = 40, abort_every = 0, pause_ms = 0;
  int64_t open_ms = 0;
  int64_t keys = 1'000, first = 0, aborted_first = 500'000'000;
};

struct NumberOption {
  std::string_view name;
  int64_t Options::* number;
  int64_t low;
};
constexpr std::array kNumbers = {
    NumberOption{"--partitions", &Options::partitions, 1},
    NumberOption{"--transactions", &Options::transactions, 0},
    NumberOption{"--records", &Options::records, 1},
    NumberOption{"--abort-every", &Options::abort_every, 0},
    NumberOption{"--pause-ms", &Options::pause_ms, 0},
    NumberOption{"--open-ms", &Options::open_ms, 0},
    NumberOption{"--keys", &Options::keys, 1},
    NumberOption{"--first", &Options::first, 0},
    NumberOption{"--aborted-first", &Options::aborted_first, 0},
};

bool Set(std::string_view name, std::string_view value, Options* options) {
  if (name == "--brokers") return !(options->brokers = value).empty();
  if (name == "--topic") return !(options->topic = value).empty();
  if (name == "--id") return !(options->id = value).empty();
  for (const NumberOption& known : kNumbers) {
    if (known.name != name) continue;
    int64_t& number = options->*known.number;
    const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), number);
    return code == std::errc() && end == value.data() + value.size() && number >= known.low &&
           number <= 1'000'000'000;
  }
  return false;
}

std::optional<Options> ParseOptions(std::span<char*> arguments) {
  Options options;
  if (arguments.size() % 2 != 0) return std::nullopt;
  for (size_t i = 0; i < arguments.size(); i += 2) {
    if (!Set(arguments[i], arguments[i + 1], &options)) return std::nullopt;
  }
  if (options.brokers.empty() || options.topic.empty()) return std::nullopt;
  return options;
}

template <auto Destroy>
struct Destroyer {
  template <typename T>
  void operator()(T* object) const {
    Destroy(object);
  }
};
using Handle = std::unique_ptr<rd_kafka_t, Destroyer<rd_kafka_destroy>>;
using ErrorRef = std::unique_ptr<rd_kafka_error_t, Destroyer<rd_kafka_error_destroy>>;

/// True when the standard input has ended, after `pause` at most.
bool InputEnded(std::chrono::milliseconds pause) {
  pollfd input = {STDIN_FILENO, POLLIN, 0};
  if (::poll(&input, 1, static_cast<int>(pause.count())) <= 0) return false;
  std::array<char, 256> ignored{};
  return ::read(STDIN_FILENO, ignored.data(), ignored.size()) <= 0;
}

/// A transactional producer that outlives its brokers. Not thread-safe.
class Writer {
 public:
  explicit Writer(Options options) : options_(std::move(options)) {}

  /// False: the brokers are away for too long, or refuse; it has said so.
  bool Open() {
    handle_.reset();  // first: the new one fences the old one
    rd_kafka_conf_t* conf = rd_kafka_conf_new();
    const std::array<std::pair<const char*, std::string>, 6> settings = {{
        {"bootstrap.servers", options_.brokers},
        {"transactional.id", options_.id},
        {"transaction.timeout.ms", "600000"},
        {"reconnect.backoff.max.ms", "500"},
        {"linger.ms", "0"},
        {"log_level", "2"},
    }};
    std::array<char, 512> text{};
    for (const auto& [name, value] : settings) {
      if (rd_kafka_conf_set(conf, name, value.c_str(), text.data(), text.size()) !=
          RD_KAFKA_CONF_OK) {
        return Say(text.data());
      }
    }
    handle_.reset(rd_kafka_new(RD_KAFKA_PRODUCER, conf, text.data(), text.size()));
    if (handle_ == nullptr) return Say(text.data());
    return Do([](rd_kafka_t* handle) { return rd_kafka_init_transactions(handle, kCallMs); }) ==
           Result::kDone;
  }

  /// Makes a transaction; false: as Open. What brokers make of it when they die is counted.
  bool Make(bool abort) {
    Result result = Do(rd_kafka_begin_transaction);
    if (result == Result::kDone) result = Produce(abort);
    const bool commit = result == Result::kDone && !abort;
    if (commit) {
      result = Do([](rd_kafka_t* handle) { return rd_kafka_commit_transaction(handle, kCallMs); });
      if (result == Result::kDone) {
        ++committed_;
        records_ += options_.records;
        return true;
      }
    }
    if (result == Result::kDone || result == Result::kMustAbort) {
      result = Do([](rd_kafka_t* handle) { return rd_kafka_abort_transaction(handle, kCallMs); });
    }
    ++(commit ? unsure_ : aborted_);
    return result == Result::kDone || (result != Result::kGaveUp && Open());
  }

  void Report() const {
    std::printf("{\"committed\": %lld, \"aborted\": %lld, \"unsure\": %lld, \"records\": %lld}\n",
                static_cast<long long>(committed_), static_cast<long long>(aborted_),
                static_cast<long long>(unsure_), static_cast<long long>(records_));
  }

 private:
  enum class Result { kDone, kMustAbort, kBroken, kGaveUp };

  static bool Say(const char* what) {
    std::fprintf(stderr, "topic_tool: %s\n", what);
    return false;
  }

  /// Calls until it is done, as long as that may help.
  Result Do(const std::function<rd_kafka_error_t*(rd_kafka_t*)>& call) {
    const auto end = std::chrono::steady_clock::now() + kTroubleMax;
    while (true) {
      const ErrorRef error(call(handle_.get()));
      if (error == nullptr) return Result::kDone;
      if (rd_kafka_error_txn_requires_abort(error.get()) != 0) return Result::kMustAbort;
      const bool again = rd_kafka_error_is_retriable(error.get()) != 0;
      Say(rd_kafka_error_string(error.get()));
      if (!again) return Result::kBroken;
      if (std::chrono::steady_clock::now() > end) return Result::kGaveUp;
      rd_kafka_poll(handle_.get(), 100);
    }
  }

  /// No number is written twice on purpose but the hot ones, and none by an aborted transaction and
  /// another.
  Result Produce(bool abort) {
    for (int64_t i = 0; i < options_.records; ++i) {
      const int64_t n = abort ? aborted_next_++ : next_++;
      const int64_t number = (abort ? options_.aborted_first : options_.first) +
                             (n % kHotEvery == 0 ? n / kHotEvery % kHot : n);
      const int64_t key = n % options_.keys;
      const std::string value_text = std::to_string(number), key_text = std::to_string(key);
      const rd_kafka_resp_err_t error = rd_kafka_producev(
          handle_.get(), RD_KAFKA_V_TOPIC(options_.topic.c_str()),
          RD_KAFKA_V_PARTITION(static_cast<int32_t>(key % options_.partitions)),
          RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY | RD_KAFKA_MSG_F_BLOCK),
          RD_KAFKA_V_VALUE(const_cast<char*>(value_text.data()), value_text.size()),
          RD_KAFKA_V_KEY(key_text.data(), key_text.size()), RD_KAFKA_V_END);
      if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
        Say(rd_kafka_err2str(error));
        return Result::kMustAbort;
      }
    }
    // An aborted transaction's records are to be in the log, too.
    rd_kafka_flush(handle_.get(), kCallMs);
    InputEnded(std::chrono::milliseconds(options_.open_ms));
    return Result::kDone;
  }

  const Options options_;
  Handle handle_;
  int64_t next_ = 0, aborted_next_ = 0;
  int64_t committed_ = 0, aborted_ = 0, unsure_ = 0, records_ = 0;
};

int Run(const Options& options) {
  Writer writer(options);
  if (!writer.Open()) return 1;
  for (int64_t i = 1; options.transactions == 0 || i <= options.transactions; ++i) {
    if (!writer.Make(options.abort_every > 0 && i % options.abort_every == 0)) return 1;
    if (InputEnded(std::chrono::milliseconds(options.pause_ms))) break;
  }
  writer.Report();
  return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  const std::span<char*> arguments(argv + 1, static_cast<size_t>(argc > 0 ? argc - 1 : 0));
  if (arguments.size() == 1 && std::string_view(arguments[0]) == "--help") {
    std::fputs(muster::kHelp, stdout);
    return 0;
  }
  const std::optional<muster::Options> options = muster::ParseOptions(arguments);
  if (!options.has_value()) {
    std::fputs(muster::kHelp, stderr);
    return 2;
  }
  return muster::Run(*options);
}
