// A trainer as a user writes it, against the installed SDK. Without a master it must say so.
#include <muster/muster.h>

#include <cstdio>
#include <vector>

int Train(muster::Session& session) {
  muster::Table embedding = session.SparseTable({.name = "embedding", .dim = 4});
  muster::DenseTensor bias =
      session.DenseTable({.name = "bias", .shape = {4}, .optimizer = muster::Adam{}});
  auto prepare = [&](muster::Minibatch& batch) { batch.Need(bias); };
  while (auto shard = session.NextShard()) {
    for (muster::Minibatch& batch : shard->Minibatches(prepare)) {
      std::vector<uint64_t> keys(batch.records().size());
      muster::Rows rows = batch.Pull(embedding, keys);
      batch.Push(embedding, keys, rows.values());
      batch.Commit();
    }
  }
  return session.Finish();
}

int main() {
  muster::SessionOptions options = muster::SessionOptions::FromEnvironment();
  options.connect_timeout_ms = 1;
  muster::Result<muster::Session> session = muster::Session::Connect(options);
  if (session.ok()) return Train(*session);
  std::printf("%s\n", session.status().message().c_str());
  return session.status().code() == muster::Status::Code::kInvalidArgument ? 0 : 1;
}
