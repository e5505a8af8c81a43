#pragma once
// A message lists its fields once, in the order in which they are packed (transport/envelope.h). New ones go to the
// end.
#include <tuple>

#define SHOAL_FIELDS(...)                         \
  auto fields() { return std::tie(__VA_ARGS__); } \
  auto fields() const { return std::tie(__VA_ARGS__); }
