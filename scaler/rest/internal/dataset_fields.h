#pragma once

#include "scaler/rest/dataset_model.h"
#include "scaler/rest/internal/fields.h"

/// What /openapi.json says of dataset_model.h. For model_json.cc, which has the rest.
namespace muster::scaler::rest {

using internal::Is;

static const char* NameOf(const ShardCounts&) {
  return "ShardCounts";
}
template <typename F, Is<ShardCounts> T>
static void Describe(F& f, T& s) {
  f.Field("total", s.total, "");
  f.Field("todo", s.todo, "");
  f.Field("leased", s.leased, "");
  f.Field("done", s.done, "Not yet committed");
  f.Field("committed", s.committed, "");
  f.Field("failed", s.failed, "");
}

static const char* NameOf(const Epoch&) {
  return "Epoch";
}
template <typename F, Is<Epoch> T>
static void Describe(F& f, T& e) {
  f.Field("epoch", e.epoch, "From 0");
  f.Field("records_expected", e.records_expected, "");
  f.Field("records_done", e.records_done, "Committed ones included");
  f.Field("records_committed", e.records_committed, "");
  f.Field("rejected_records", e.rejected_records, "");
  f.Field("reject_samples", e.reject_samples, "Some of them: file:line: reason");
  f.Field("metrics", e.metrics, "Of what is committed; null: not defined");
  f.Field("shards", e.shards, "");
}

static const char* NameOf(const TopicPartition&) {
  return "TopicPartition";
}
template <typename F, Is<TopicPartition> T>
static void Describe(F& f, T& p) {
  f.Field("partition", p.partition, "Of the topic");
  f.Field("begin", p.begin, "Where the dataset begins");
  f.Field("cut", p.cut, "Everything before it lies in a shard");
  f.Field("committed", p.committed, "Everything before it is committed");
  f.Field("end", p.end, "Where the dataset ends; absent: never, or not known yet");
  f.Field("log_begin", p.log_begin, "The oldest offset that is kept");
  f.Field("stable_end", p.stable_end, "The last stable offset");
  f.Field("lag", p.lag,
          "Offsets that can be read and are not committed; absent, as the next two: the topic was "
          "not seen yet");
  f.Field("lag_seconds", p.lag_seconds, "Since the first of them was first seen");
  f.Field("held_back", p.held_back, "Offsets that wait for open transactions");
  f.Field("open_ranges", p.open_ranges, "Shards that are not committed");
  f.Field("lost", p.lost, "Offsets that are gone from the log; their shards are failed");
}

static const char* NameOf(const Delay&) {
  return "Delay";
}
template <typename F, Is<Delay> T>
static void Describe(F& f, T& d) {
  f.Field("records", d.records, "Of about the last minute, as the next two");
  f.Field("p50_seconds", d.p50_seconds, "At most a quarter too large, as all quantiles here");
  f.Field("p99_seconds", d.p99_seconds, "");
  f.Field("total_records", d.total_records, "Since master and workers began, as all below");
  f.Field("total_p50_seconds", d.total_p50_seconds, "");
  f.Field("total_p99_seconds", d.total_p99_seconds, "");
  f.Field("total_seconds", d.total_seconds, "The sum");
  f.Field("buckets", d.buckets, "Records below 4 ms, 8 ms, 16 ms and so on");
}

static const char* NameOf(const Stream&) {
  return "Stream";
}
template <typename F, Is<Stream> T>
static void Describe(F& f, T& s) {
  f.Field("topic", s.topic, "");
  f.Field("open", s.open, "More shards will come");
  f.Field("trouble", s.trouble, "Why it cannot be looked at now; empty: it can");
  f.Field("dead_letter_trouble", s.dead_letter_trouble,
          "Why rejected records cannot be written to their topic; empty: nothing is known");
  f.Field("lag", s.lag,
          "Of all partitions, in offsets; absent, as the next two: not known, for one of them at "
          "least");
  f.Field("lag_seconds", s.lag_seconds, "Of the partition where it is largest");
  f.Field("held_back", s.held_back, "Of all partitions, in offsets");
  f.Field("delay", s.delay,
          "From a record's timestamp until the servers had applied it; absent: nothing yet");
  f.Field("partitions", s.partitions, "");
}

static const char* NameOf(const Dataset&) {
  return "Dataset";
}
template <typename F, Is<Dataset> T>
static void Describe(F& f, T& d) {
  f.Field("index", d.index, "Position in the job file, from 0");
  f.Field("name", d.name, "");
  f.Choice("mode", d.mode, {"train", "evaluate"}, "");
  f.Field("epochs_total", d.epochs_total, "");
  f.Field("epochs", d.epochs, "At most 1,000: those around the newest");
  f.Field("stream", d.stream, "The dataset is a topic; absent: files");
}

static const char* NameOf(const DatasetList&) {
  return "DatasetList";
}
template <typename F, Is<DatasetList> T>
static void Describe(F& f, T& l) {
  f.Field("datasets", l.datasets, "");
}

}  // namespace muster::scaler::rest
