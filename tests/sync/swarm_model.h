#pragma once
// Names and the model of the simulated swarm.
#include "common/ids.h"
#include "stages/stage_spec.h"

namespace shoal::test {

inline constexpr std::uint64_t kTargets = 4;

inline StageSpec model_spec() {
  ModelSpec model;
  model.layers = 1;
  model.dim = 4;
  model.heads = 1;
  model.positions = 4;
  model.vocabulary = 16;
  model.seed = 1;
  return split_model(model, 1).value()[0];
}

inline HostTensor model_tokens() {
  Buffer buffer(5);
  for (std::size_t i = 0; i < 5; ++i) buffer.data()[i] = static_cast<std::uint8_t>(i);
  return make_host_tensor(DType::kU8, {1, 5}, std::move(buffer));
}

inline PeerId host_key(std::size_t host) {
  PeerId peer;
  peer.bytes[0] = static_cast<std::uint8_t>(host);
  peer.bytes[31] = 7;
  return peer;
}
inline std::size_t session_host(const Session& session) { return static_cast<std::size_t>(session.peer_tag); }

}  // namespace shoal::test
