#pragma once
// The policies that choose the next peer of a microbatch (router/policy.h), by the names that [pipeline] routing has.
#include <array>
#include <cstdint>
#include <string_view>

namespace shoal {

enum class RoutingId : std::uint8_t { kRendezvous = 0, kIwrr = 1, kTwoChoices = 2, kLeast = 3, kFlow = 4 };
inline constexpr std::array<std::string_view, 5> kRoutingNames = {"rendezvous", "iwrr", "two-choices", "least", "flow"};

}  // namespace shoal
