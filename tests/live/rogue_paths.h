#pragma once
// What shoal-rogue says where it names entries of others, in a run of two stages.
#include "common/crypto/path_tag.h"
#include "transport/messages.h"

namespace shoal {

// An answer of stage 0 begins with the sender's own entry and goes on with one of `other` that it makes up, without
// that session's tag; one of stage 1 has the made up one alone.
inline Gradient forged_gradient(const Forward& asked, const EntryName& own, const Digest& path_key,
                                const Session& other, std::uint64_t targets) {
  Gradient gradient;
  gradient.lease = asked.lease;
  gradient.microbatch = asked.microbatch;
  if (asked.stage == StageId(0)) {
    gradient.path.push_back(own);
    gradient.tags.emplace_back(path_tag(path_key, asked.microbatch, own.serial));
  }
  gradient.path.push_back({other, own.serial});
  gradient.tags.emplace_back(own.serial);
  gradient.targets = targets;
  gradient.loss_sum = static_cast<double>(targets);
  gradient.forward_us = gradient.backward_us = 1000;
  return gradient;
}

}  // namespace shoal
