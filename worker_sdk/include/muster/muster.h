#pragma once

/// The Muster worker SDK. A trainer includes only this header; it includes no third-party header.
///
///   auto session = muster::Session::Connect(muster::SessionOptions::FromEnvironment()).value();
///   auto embedding = session.SparseTable({.name = "embedding", .dim = 16,
///                                         .optimizer = muster::Adagrad{.learning_rate = 0.05f}});
///   while (auto shard = session.NextShard()) {
///     for (muster::Minibatch& batch : shard->Minibatches(prepare)) {
///       muster::Rows rows = batch.Pull(embedding, keys);
///       ...
///       batch.Push(embedding, keys, gradients);
///       batch.Commit();
///     }
///   }
///   return session.Finish();
///
/// A job with `spec.group` trains synchronously, with another loop: muster/group.h. Over a slow
/// network, its members train alone for many minibatches: muster/local_sgd.h.

#include "muster/group.h"
#include "muster/local_sgd.h"
#include "muster/minibatch.h"
#include "muster/session.h"
#include "muster/status.h"
#include "muster/table.h"
