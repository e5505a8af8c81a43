#pragma once
// Reducers of a round's members, put together by hand.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "common/rng.h"
#include "sync/reducer.h"
#include "tests/sync/sync_fixtures.h"

namespace shoal::test {

inline Payload random_payload(Rng& rng, std::size_t count, std::uint64_t weight, CountTag tag) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<float>(rng.normal()));
  return payload_of(values, weight, tag);
}

inline Reducer reducer_of(const RoundShape& shape, bool mean, const Payload& own) {
  const DenseSum how = mean ? DenseSum::kWeightedMean : DenseSum::kSum;
  Reducer reducer(shape, make_dense_sum(how, own.bytes, shape.parts()), own.weight, own.tag);
  reducer.cut().job();
  return reducer;
}
inline Reducer reducer_of(std::size_t members, std::size_t self, bool mean, const Payload& own) {
  return reducer_of({members, self, all_own(members)}, mean, own);
}

inline Result<Reducer::Piece> summed(Reducer& reducer) {
  reducer.sum_own_part().job();
  return reducer.take_own_part();
}

inline Result<Payload> joined(Reducer& reducer) {
  reducer.join().job();
  return reducer.take_result();
}

// Runs the two phases, pieces in a random order.
inline std::vector<Payload> reduce_all(const std::vector<Payload>& payloads, bool mean, Rng& rng,
                                       const RoundOwners& owners) {
  std::vector<Reducer> members;
  const std::size_t n = payloads.size();
  for (std::size_t i = 0; i < n; ++i) members.push_back(reducer_of({n, i, owners}, mean, payloads[i]));
  std::vector<std::pair<std::size_t, std::size_t>> pairs;  // a member, a part of another one
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t part = 0; part < owners.size(); ++part)
      if (i != owners[part]) pairs.emplace_back(i, part);
  rng.shuffle(pairs);
  for (const auto& [from, part] : pairs) members[owners[part]].add(from, members[from].piece_for(part));
  std::vector<Reducer::Piece> sums;
  for (const std::size_t owner : owners) {
    EXPECT_TRUE(members[owner].own_part_due());
    sums.push_back(summed(members[owner]).value());
  }
  for (Reducer& member : members) EXPECT_FALSE(member.own_part_due());
  rng.shuffle(pairs);
  for (const auto& [to, part] : pairs) members[to].take(part, sums[part]);
  std::vector<Payload> results;
  for (Reducer& member : members) {
    EXPECT_TRUE(member.complete());
    results.push_back(joined(member).value());
  }
  return results;
}

inline std::vector<Payload> reduce_all(const std::vector<Payload>& payloads, bool mean, Rng& rng) {
  return reduce_all(payloads, mean, rng, all_own(payloads.size()));
}

}  // namespace shoal::test
