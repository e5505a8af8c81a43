#include "transport/refusal_book.h"

#include <bit>

#include "common/log.h"

namespace shoal {

std::string_view name_of(Refusal cause) {
  static constexpr std::array<std::string_view, kRefusalKinds> kNames = {
      "key",     "key exchange",    "greeting", "foreign peer", "lane version",
      "message", "endless message", "flood",    "crowd"};
  return kNames.at(static_cast<std::size_t>(cause));
}

void RefusalBook::note(Refusal cause, const std::string& who, const std::string& why) {
  const std::uint64_t count = ++counts_[static_cast<std::size_t>(cause)];
  if (!std::has_single_bit(count)) return;
  log_warning("refused from ", who, " (", name_of(cause), ", ", count, " so far): ", why);
}

RefusalCounts RefusalBook::counts() const {
  RefusalCounts counts{};
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = counts_[i];
  return counts;
}

}  // namespace shoal
