#pragma once
// One message of every type with every field filled by a counter: for golden sums, truncation and mutation.
#include <utility>
#include <vector>

#include "transport/envelope_fields.h"
#include "transport/messages.h"

namespace shoal {

class SampleFiller {
 public:
  template <class T>
  void fill(T& value) {
    using namespace fields;
    const std::uint64_t n = ++counter_;
    if constexpr (std::is_same_v<T, bool>) {
      value = n % 2 == 1;
    } else if constexpr (std::is_enum_v<T>) {
      value = last_of(T{});
    } else if constexpr (std::is_same_v<T, RelayPlace>) {  // a place alone parses
      value = {"192.0.2." + std::to_string(n % 256) + ":443", static_cast<std::uint32_t>(n)};
    } else if constexpr (std::is_unsigned_v<T>) {
      value = static_cast<T>(n * 0x0101010101010101ull);
    } else if constexpr (std::is_same_v<T, double>) {
      value = static_cast<double>(n) + 0.5;
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = "text " + std::to_string(n);
    } else if constexpr (std::is_same_v<T, std::vector<std::uint8_t>>) {
      value.assign(3 + n % 5, static_cast<std::uint8_t>(n));
    } else if constexpr (IsKey<T>::value) {
      value.bytes.fill(static_cast<std::uint8_t>(n));
    } else if constexpr (IsStrongInt<T>::value) {
      fill(value.value);
    } else if constexpr (IsOptional<T>::value) {
      fill(value.emplace());
    } else if constexpr (IsVector<T>::value) {
      value.resize(2);
      for (auto& item : value) fill(item);
    } else {
      std::apply([this](auto&... member) { (fill(member), ...); }, fields_of(value));
    }
  }

 private:
  std::uint64_t counter_ = 0;
};

template <std::size_t... I>
std::vector<Message> sample_messages(std::index_sequence<I...>) {
  std::vector<Message> samples;
  const auto add = [&](auto item) {
    SampleFiller().fill(item);
    samples.emplace_back(std::move(item));
  };
  (add(std::variant_alternative_t<I, Message>{}), ...);
  return samples;
}
inline std::vector<Message> sample_messages() {
  return sample_messages(std::make_index_sequence<std::variant_size_v<Message>>{});
}

}  // namespace shoal
