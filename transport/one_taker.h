#pragma once
// Which part takes which message, as one table: std::visit(OneTaker{lambda, lambda, ...}, message) with a lambda for
// each message, or for several (`AnyOf`). There is no default, so that a new message that nobody takes does not
// compile.
#include <concepts>
#include <type_traits>

namespace shoal {

template <class... Takers>
struct OneTaker : Takers... {
  using Takers::operator()...;
};
template <class... Takers>
OneTaker(Takers...) -> OneTaker<Takers...>;

// [&](AnyOf<Ping, Pong> auto& m) { ... }
template <class M, class... Of>
concept AnyOf = (std::same_as<std::remove_cvref_t<M>, Of> || ...);

}  // namespace shoal
