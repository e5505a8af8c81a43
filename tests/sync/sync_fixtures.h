#pragma once
// What the tests of sync/ share: a one-stage model for the exact executor, and ways to put entries into it.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "stages/integer_executor.h"
#include "sync/outer_rule.h"
#include "tests/stages/host_passes.h"

namespace shoal::test {

inline StageSpec tiny_spec() {
  const ModelSpec model{.layers = 1, .dim = 4, .heads = 1, .positions = 4, .vocabulary = 16, .seed = 1};
  return split_model(model, 1).value()[0];
}

inline HostTensor tiny_tokens() {
  Buffer buffer(5);
  for (std::size_t i = 0; i < 5; ++i) buffer.data()[i] = static_cast<std::uint8_t>(i);
  return make_host_tensor(DType::kU8, {1, 5}, std::move(buffer));
}

// Forward and backward of one microbatch into `window`; 4 targets.
inline void count_entry(StageExecutor& executor, EntrySerial entry, const MicrobatchId& microbatch, WindowSlot window) {
  ASSERT_TRUE(pass_forward(executor, {entry, microbatch, tiny_tokens()}).ok());
  ASSERT_TRUE(pass_backward(executor, entry, {}, window).ok());
}

inline constexpr std::uint64_t kTargetsOfEntry = 4;

inline std::vector<float> values_of(StageExecutor& executor, ArenaRole role) {
  const std::span<const float> span = executor.arena().span(role);
  return {span.begin(), span.end()};
}

inline void fill(StageExecutor& executor, ArenaRole role, float first, float step) {
  std::span<float> span = executor.arena().span(role);
  for (std::size_t i = 0; i < span.size(); ++i) span[i] = first + step * static_cast<float>(i);
}

// A dense payload, and its values.
inline Payload payload_of(const std::vector<float>& values, std::uint64_t weight = 0, CountTag tag = 0) {
  return {Bytes::copy_of(bytes_of(std::span<const float>(values))), weight, tag};
}
inline std::vector<float> values_of(const Payload& payload) {
  const std::span<const float> values = dense_values(payload.bytes);
  return {values.begin(), values.end()};
}

// What a member brings, at once.
inline Result<Payload> contributed(OuterRule& rule, StageExecutor& executor, const RoundContext& context) {
  SHOAL_TRY(rule.take_snapshot(executor, context));
  return rule.contribute(executor, context);
}

inline Session session_of(std::uint64_t n) { return Session{n, 1000 + n}; }
inline PeerId peer_of(std::uint64_t n) {
  PeerId peer;
  peer.bytes[0] = static_cast<std::uint8_t>(n);
  peer.bytes[31] = 7;
  return peer;
}
// The n of peer_of.
inline std::uint64_t number_of(const Session& session) { return session.peer_tag; }

}  // namespace shoal::test
