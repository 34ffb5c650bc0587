// Consumes a topic as fast as it can, for benchmarks/topics.py, and says how fast that was:
// {"records": of whose time is known, "bytes": of values, "seconds": for them}. Connecting and the
// first batch or shard are not counted.
//
// topic_bench bare poll|batch BROKERS TOPIC PARTITIONS [NAME=VALUE ...]
//   A bare librdkafka consumer with these settings, from the oldest record to the end; on stdout.
// topic_bench fill BROKERS TOPIC PARTITIONS RECORDS BYTES RATE BURST
//   Writes records, RATE a second (0: as fast as possible), BURST after each other to a partition,
//   then to the next one.
// topic_bench worker FOLDER [MICROSECONDS]
//   A worker of a job (`muster run` starts it) that waits so long for each minibatch, as for an
//   accelerator, or not at all, and pushes nothing; in FOLDER/<node>.
#include <librdkafka/rdkafka.h>
#include <muster/muster.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace {

/// Records from the first lap to the last.
class Meter {
 public:
  void Count(uint64_t records, uint64_t bytes) {
    records_ += records;
    bytes_ += bytes;
  }
  void Lap() {
    end_ = clock_.Now();
    if (laps_++ > 0) return;
    begin_ = end_;
    records_ = bytes_ = 0;
  }
  void Write(std::FILE* file) const {
    std::fprintf(file, "{\"records\": %llu, \"bytes\": %llu, \"seconds\": %.6f}\n",
                 static_cast<unsigned long long>(records_), static_cast<unsigned long long>(bytes_),
                 std::chrono::duration<double>(end_ - begin_).count());
  }

 private:
  const muster::SystemClock clock_;
  muster::TimePoint begin_, end_;
  uint64_t laps_ = 0, records_ = 0, bytes_ = 0;
};

[[noreturn]] void Die(const char* what) {
  std::fprintf(stderr, "topic_bench: %s\n", what);
  std::exit(1);
}

void Set(rd_kafka_conf_t* conf, const char* name, const char* value) {
  char error[512];
  if (rd_kafka_conf_set(conf, name, value, error, sizeof(error)) != RD_KAFKA_CONF_OK) Die(error);
}

/// One message at a time, as most programs do, or all that are there.
size_t Take(rd_kafka_t* client, rd_kafka_queue_t* queue, bool batches,
            std::span<rd_kafka_message_t*> messages) {
  if (batches) {
    const ssize_t count = rd_kafka_consume_batch_queue(queue, 10, messages.data(), messages.size());
    return static_cast<size_t>(std::max<ssize_t>(count, 0));
  }
  messages[0] = rd_kafka_consumer_poll(client, 10);
  return messages[0] == nullptr ? 0 : 1;
}

int RunBare(bool batches, const char* brokers, const char* topic, int partitions,
            std::span<char*> settings) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  Set(conf, "bootstrap.servers", brokers);
  Set(conf, "group.id", "topic-bench");
  Set(conf, "enable.auto.commit", "false");
  Set(conf, "enable.partition.eof", "true");
  for (const std::string setting : settings) {
    const size_t equals = setting.find('=');
    if (equals == std::string::npos) Die("a setting is NAME=VALUE");
    Set(conf, setting.substr(0, equals).c_str(), setting.c_str() + equals + 1);
  }
  char error[512];
  rd_kafka_t* client = rd_kafka_new(RD_KAFKA_CONSUMER, conf, error, sizeof(error));
  if (client == nullptr) Die(error);
  rd_kafka_poll_set_consumer(client);
  rd_kafka_topic_partition_list_t* list = rd_kafka_topic_partition_list_new(partitions);
  for (int p = 0; p < partitions; ++p)
    rd_kafka_topic_partition_list_add(list, topic, p)->offset = 0;
  rd_kafka_assign(client, list);
  rd_kafka_queue_t* queue = rd_kafka_queue_get_consumer(client);
  Meter meter;
  std::array<rd_kafka_message_t*, 1024> messages{};
  for (int ended = 0; ended < partitions;) {
    const size_t count = Take(client, queue, batches, messages);
    for (size_t i = 0; i < count; ++i) {
      rd_kafka_message_t* message = messages[i];
      if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        ++ended;
      } else if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        meter.Count(1, message->len);
      }
      rd_kafka_message_destroy(message);
    }
    if (count > 0) meter.Lap();
  }
  meter.Write(stdout);
  rd_kafka_queue_destroy(queue);
  rd_kafka_topic_partition_list_destroy(list);
  rd_kafka_destroy(client);
  return 0;
}

struct Fill {
  int partitions = 1;
  uint64_t records = 0, bytes = 0, rate = 0, burst = 1;
};

int RunFill(const char* brokers, const char* topic, const Fill& fill) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  Set(conf, "bootstrap.servers", brokers);
  Set(conf, "acks", "1");
  Set(conf, "linger.ms", "5");
  char error[512];
  rd_kafka_t* client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error, sizeof(error));
  if (client == nullptr) Die(error);
  rd_kafka_topic_t* handle = rd_kafka_topic_new(client, topic, nullptr);
  const std::string value(fill.bytes, 'x');
  const muster::SystemClock clock;
  const muster::TimePoint begin = clock.Now();
  for (uint64_t i = 0; i < fill.records; ++i) {
    const auto partition = static_cast<int32_t>(i / fill.burst % fill.partitions);
    while (rd_kafka_produce(handle, partition, RD_KAFKA_MSG_F_COPY, const_cast<char*>(value.data()),
                            value.size(), nullptr, 0, nullptr) != 0) {
      if (rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL) Die("cannot write");
      rd_kafka_poll(client, 10);
    }
    if (fill.rate == 0 || i % 16 != 0) continue;
    rd_kafka_poll(client, 0);
    const muster::TimePoint due = begin + std::chrono::nanoseconds(i * 1'000'000'000 / fill.rate);
    if (due > clock.Now()) muster::SleepFor(due - clock.Now());
  }
  if (rd_kafka_flush(client, 120'000) != RD_KAFKA_RESP_ERR_NO_ERROR) Die("cannot write everything");
  rd_kafka_topic_destroy(handle);
  rd_kafka_destroy(client);
  return 0;
}

int RunWorker(const std::string& folder, std::chrono::microseconds compute) {
  const muster::SessionOptions options = muster::SessionOptions::FromEnvironment();
  muster::Session session = muster::Session::Connect(options).value();
  Meter meter;
  while (auto shard = session.NextShard()) {
    for (muster::Minibatch& minibatch : shard->Minibatches()) {
      uint64_t bytes = 0;
      for (const std::string_view record : minibatch.records()) bytes += record.size();
      meter.Count(minibatch.records().size(), bytes);
      if (compute.count() > 0) muster::SleepFor(compute);
    }
    meter.Lap();
  }
  const int code = session.Finish();
  std::FILE* file = std::fopen((folder + "/" + options.worker_name).c_str(), "w");
  if (file == nullptr) Die("cannot write the figures");
  meter.Write(file);
  return std::fclose(file) == 0 ? code : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  const std::string_view mode = argc > 2 ? argv[2] : "";
  if (what == "bare" && argc >= 6 && (mode == "poll" || mode == "batch")) {
    return RunBare(mode == "batch", argv[3], argv[4], std::atoi(argv[5]),
                   std::span(argv, static_cast<size_t>(argc)).subspan(6));
  }
  if (what == "fill" && argc == 9) {
    const auto number = [&](int i) { return std::strtoull(argv[i], nullptr, 10); };
    return RunFill(argv[2], argv[3],
                   {.partitions = std::atoi(argv[4]),
                    .records = number(5),
                    .bytes = number(6),
                    .rate = number(7),
                    .burst = std::max<uint64_t>(number(8), 1)});
  }
  if (what == "worker" && (argc == 3 || argc == 4)) {
    return RunWorker(argv[2], std::chrono::microseconds(argc == 4 ? std::atoi(argv[3]) : 0));
  }
  std::fprintf(stderr,
               "Usage: topic_bench bare poll|batch BROKERS TOPIC PARTITIONS [NAME=VALUE ...]\n"
               "       topic_bench fill BROKERS TOPIC PARTITIONS RECORDS BYTES RATE BURST\n"
               "       topic_bench worker FOLDER [MICROSECONDS]\n");
  return 2;
}
