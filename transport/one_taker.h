#pragma once
// One page of code that says which part of a process takes which message. Without a default branch the compiler refuses
// a message that has no taker, and one that has two.
//
//   std::visit(OneTaker{[&](const Beat& beat) { ... },                            // one message
//                       [&](const OneOf<Leave, Goodbye> auto& message) { ... }},  // several, each as what it is
//              message);
#include <concepts>

namespace shoal {

template <class... Takers>
struct OneTaker : Takers... {
  using Takers::operator()...;
};

template <class M, class... Messages>
concept OneOf = (std::same_as<M, Messages> || ...);

}  // namespace shoal
