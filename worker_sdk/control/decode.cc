#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <stdexcept>

// Another wire type than expected is malformed input, not a bug of ours: throw, never abort.
namespace muster::sdk {
[[noreturn]] static void ThrowMalformed() {
  throw std::runtime_error("a field of another type");
}
}  // namespace muster::sdk
#define protozero_assert(x) ((x) ? static_cast<void>(0) : ::muster::sdk::ThrowMalformed())
#include <protozero/pbf_reader.hpp>

#include "base/status.h"
#include "worker_sdk/control/control_codec.h"

namespace muster::sdk {
namespace {

using Reader = protozero::pbf_reader;

/// Thrown for an exceeded limit; never leaves this file.
struct LimitExceeded : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::string Text(Reader* in) {
  protozero::data_view view = in->get_view();
  if (view.size() > kTextBytesMax) {
    throw LimitExceeded(fmt::format("field {} has {} bytes of text, at most {} are allowed",
                                    static_cast<uint32_t>(in->tag()), view.size(), kTextBytesMax));
  }
  return std::string(view.data(), view.size());
}

template <typename T>
T& Append(std::vector<T>* items, Reader* in) {
  if (items->size() >= kItemsMax) {
    throw LimitExceeded(fmt::format("field {} is there more than {} times",
                                    static_cast<uint32_t>(in->tag()), kItemsMax));
  }
  return items->emplace_back();
}

/// Calls `field(reader)` for every field of `in`; it must read or skip the value.
template <typename Field>
void ForEach(Reader in, Field field) {
  while (in.next()) field(&in);
}

ShardId ReadShard(Reader in) {
  ShardId id;
  ForEach(in, [&](Reader* f) {
    switch (f->tag()) {
      case 1:
        id.dataset = DatasetId(f->get_uint32());
        break;
      case 2:
        id.epoch = EpochIndex(f->get_uint32());
        break;
      case 3:
        id.index = ShardIndex(f->get_uint64());
        break;
      default:
        f->skip();
    }
  });
  return id;
}

StreamWork ReadStream(Reader in) {
  StreamWork stream;
  ForEach(in, [&](Reader* f) {
    switch (f->tag()) {
      case 1:
        stream.topic = Text(f);
        break;
      case 2:
        stream.partition = TopicPartition(f->get_uint32());
        break;
      case 3:
        stream.begin = f->get_uint64();
        break;
      case 4:
        stream.end = f->get_uint64();
        break;
      default:
        f->skip();
    }
  });
  return stream;
}

void ReadWork(Reader in, ShardWork* work) {
  ForEach(in, [&](Reader* f) {
    switch (f->tag()) {
      case 1:
        work->dataset_name = Text(f);
        break;
      case 2:
        work->mode = f->get_uint32() == 1 ? DatasetMode::kEvaluate : DatasetMode::kTrain;
        break;
      case 3:
        work->path = Text(f);
        break;
      case 4:
        work->source_bytes = f->get_uint64();
        break;
      case 5:
        work->source_hash = f->get_fixed64();
        break;
      case 6:
        work->first_record = f->get_uint64();
        break;
      case 7:
        work->record_count = f->get_uint32();
        break;
      case 8:
        work->byte_begin = f->get_uint64();
        break;
      case 9:
        work->byte_end = f->get_uint64();
        break;
      case 10:
        work->minibatch_size = f->get_uint32();
        break;
      case 11:
        work->has_header = f->get_bool();
        break;
      case 12:
        work->shuffle_seed = f->get_fixed64();
        break;
      case 13:
        work->first_step = f->get_uint64();
        break;
      case 14:
        work->stream = ReadStream(f->get_message());
        break;
      default:
        f->skip();
    }
  });
}

void ReadGrant(Reader in, ShardGrant* grant) {
  ForEach(in, [&](Reader* f) {
    switch (f->tag()) {
      case 1:
        grant->shard = ReadShard(f->get_message());
        break;
      case 2:
        grant->token = LeaseToken::FromValue(f->get_uint64());
        break;
      case 3:
        grant->restore_epoch = RestoreEpoch(f->get_uint64());
        break;
      case 4:
        ReadWork(f->get_message(), &grant->work);
        break;
      default:
        f->skip();
    }
  });
  if (grant->work.minibatch_size == 0 || grant->work.record_count == 0) {
    throw LimitExceeded(fmt::format("shard {} has {} records in minibatches of {}",
                                    ToString(grant->shard), grant->work.record_count,
                                    grant->work.minibatch_size));
  }
}

void ReadVerdict(Reader in, DoneVerdict* verdict) {
  ForEach(in, [&](Reader* f) {
    switch (f->tag()) {
      case 1:
        verdict->shard = ReadShard(f->get_message());
        break;
      case 2:
        verdict->token = LeaseToken::FromValue(f->get_uint64());
        break;
      case 3:
        verdict->run = RunNumber(f->get_uint32());
        break;
      case 4: {
        uint32_t code = f->get_uint32();
        if (code > 2) throw LimitExceeded(fmt::format("a verdict has the unknown code {}", code));
        verdict->code = static_cast<DoneCode>(code);
        break;
      }
      case 5:
        verdict->restore_epoch = RestoreEpoch(f->get_uint64());
        break;
      default:
        f->skip();
    }
  });
}

void ReadPartition(Reader in, PartitionEntry* entry) {
  ForEach(in, [&](Reader* f) {
    switch (f->tag()) {
      case 1:
        entry->owner = ServerId(f->get_uint32());
        break;
      case 2:
        entry->owner_incarnation = ServerIncarnation(f->get_uint64());
        break;
      case 3:
        entry->epoch = OwnerEpoch(f->get_uint64());
        break;
      case 4:
        entry->since = OwnerEpoch(f->get_uint64());
        break;
      case 5:
        entry->copy = OwnerEpoch(f->get_uint64());
        break;
      case 6:
        entry->restored = f->get_bool();
        break;
      case 7:
        entry->restored_at = RestoreEpoch(f->get_uint64());
        break;
      default:
        f->skip();
    }
  });
}

void ReadServer(Reader in, ServerEndpoint* server) {
  ForEach(in, [&](Reader* f) {
    switch (f->tag()) {
      case 1:
        server->id = ServerId(f->get_uint32());
        break;
      case 2:
        server->incarnation = ServerIncarnation(f->get_uint64());
        break;
      case 3:
        server->name = Text(f);
        break;
      case 4: {
        std::vector<std::string>& lane = Append(&server->lanes, f);
        ForEach(f->get_message(), [&](Reader* address) {
          if (address->tag() == 1) {
            Append(&lane, address) = Text(address);
          } else {
            address->skip();
          }
        });
        break;
      }
      default:
        f->skip();
    }
  });
}

void ReadMap(Reader in, PartitionMap* map) {
  ForEach(in, [&](Reader* f) {
    switch (f->tag()) {
      case 1:
        map->version = MapVersion(f->get_uint64());
        break;
      case 2:
        map->restore_epoch = RestoreEpoch(f->get_uint64());
        break;
      case 3:
        ReadPartition(f->get_message(), &Append(&map->partitions, f));
        break;
      case 4:
        ReadServer(f->get_message(), &Append(&map->servers, f));
        break;
      default:
        f->skip();
    }
  });
}

void ReadLost(Reader* in, std::vector<LeaseToken>* lost) {
  if (in->wire_type() == protozero::pbf_wire_type::varint) {
    Append(lost, in) = LeaseToken::FromValue(in->get_uint64());
    return;
  }
  for (uint64_t token : in->get_packed_uint64()) {
    Append(lost, in) = LeaseToken::FromValue(token);
  }
}

void ReadExchangeReply(Reader in, WorkerExchangeReply* reply) {
  ForEach(in, [&](Reader* f) {
    switch (f->tag()) {
      case 1:
        reply->master_incarnation = MasterIncarnation(f->get_uint64());
        break;
      case 2: {
        uint32_t directive = f->get_uint32();
        if (directive > 2) throw LimitExceeded(fmt::format("unknown directive {}", directive));
        reply->directive = static_cast<JobDirective>(directive);
        break;
      }
      case 3:
        ReadGrant(f->get_message(), &Append(&reply->grants, f));
        break;
      case 4:
        ReadVerdict(f->get_message(), &Append(&reply->verdicts, f));
        break;
      case 5:
        ReadLost(f, &reply->lost);
        break;
      case 6:
        ReadMap(f->get_message(), &reply->map.emplace());
        break;
      case 7:
        reply->heartbeat_interval = std::chrono::milliseconds(f->get_uint64());
        break;
      default:
        f->skip();
    }
  });
}

/// An entry of a map of texts.
void ReadSetting(Reader in, std::map<std::string, std::string>* settings) {
  std::string name, value;
  ForEach(in, [&](Reader* f) {
    switch (f->tag()) {
      case 1:
        name = Text(f);
        break;
      case 2:
        value = Text(f);
        break;
      default:
        f->skip();
    }
  });
  if (settings->size() >= kItemsMax) throw LimitExceeded("too many settings");
  (*settings)[name] = value;
}

TopicSource ReadTopic(Reader in) {
  TopicSource topic;
  ForEach(in, [&](Reader* f) {
    switch (f->tag()) {
      case 1:
        topic.dataset = Text(f);
        break;
      case 2:
        Append(&topic.brokers, f) = Text(f);
        break;
      case 3:
        ReadSetting(f->get_message(), &topic.properties);
        break;
      case 4:
        ReadSetting(f->get_message(), &topic.secrets);
        break;
      case 5:
        topic.group = Text(f);
        break;
      case 6:
        topic.record_bytes_max = f->get_uint64();
        break;
      case 7:
        topic.dead_letter_topic = Text(f);
        break;
      default:
        f->skip();
    }
  });
  return topic;
}

void ReadHello(Reader in, HelloAnswer* answer) {
  ForEach(in, [&](Reader* f) {
    switch (f->tag()) {
      case 1:
        answer->job = Text(f);
        break;
      case 2:
        answer->seed = f->get_uint64();
        break;
      case 3:
        answer->partition_count = f->get_uint32();
        break;
      case 4:
        answer->heartbeat_interval_ms = f->get_uint64();
        break;
      case 5:
        answer->unacknowledged_minibatches_max = f->get_uint32();
        break;
      case 6:
        answer->prefetch_minibatches = f->get_uint32();
        break;
      case 7:
        answer->shards_ahead = f->get_uint32();
        break;
      case 8:
        answer->wire_encoding = Text(f);
        break;
      case 9:
        answer->lease_duration_ms = f->get_uint64();
        break;
      case 10:
        answer->job_id = Text(f);
        break;
      case 11:
        Append(&answer->topics, f) = ReadTopic(f->get_message());
        break;
      default:
        f->skip();
    }
  });
}

/// Runs `read(reader, &value)`; what it throws becomes a status that names the message.
template <typename T, typename Read>
absl::StatusOr<T> Decode(std::string_view bytes, std::string_view name, Read read) {
  T value;
  try {
    read(Reader(bytes.data(), bytes.size()), &value);
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(
        fmt::format("the master sent a malformed {}: {}", name, error.what()));
  }
  return value;
}

}  // namespace

absl::StatusOr<HelloAnswer> DecodeHelloResponse(std::string_view bytes) {
  return Decode<HelloAnswer>(bytes, "HelloResponse", ReadHello);
}

absl::StatusOr<TableId> DecodeRegisterTableResponse(std::string_view bytes) {
  return Decode<TableId>(bytes, "RegisterTableResponse", [](Reader in, TableId* id) {
    ForEach(in, [&](Reader* f) {
      if (f->tag() == 1) {
        *id = TableId(f->get_uint32());
      } else {
        f->skip();
      }
    });
  });
}

absl::StatusOr<WorkerExchangeReply> DecodeExchangeReply(std::string_view bytes) {
  return Decode<WorkerExchangeReply>(bytes, "WorkerExchangeReply", ReadExchangeReply);
}

}  // namespace muster::sdk
