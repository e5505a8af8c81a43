#include "router/hearsay.h"

namespace shoal {

void Hearsay::hear(EntrySerial serial, TimePoint now) {
  words_.try_emplace(serial, Word{now + lease_, now + lease_ / 6, std::nullopt});
}

bool Hearsay::keeps(EntrySerial serial) const {
  const auto it = words_.find(serial);
  return it != words_.end() && !it->second.over;
}

std::vector<EntrySerial> Hearsay::tick(TimePoint now, const std::function<bool(EntrySerial)>& ask) {
  std::vector<EntrySerial> over;
  for (auto& [serial, word] : words_) {
    if (word.over) continue;
    if (now >= word.ask_at) {
      word.ask_at = now + lease_ / 6;
      if (ask(serial) && !word.asked) word.asked = now;
    }
    // While the trainer is away nothing is decided, and a question that left may be lost with its link: its COMMIT may
    // be repeated when it is heard again.
    if (!word.asked || trainer_heard_ <= *word.asked) word.until = now + lease_;
    if (now < word.until) continue;
    word.over = true;
    over.push_back(serial);
  }
  return over;
}

}  // namespace shoal
