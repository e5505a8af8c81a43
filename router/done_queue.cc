#include "router/done_queue.h"

#include <algorithm>
#include <utility>

namespace shoal {

void DoneQueue::add(DoneItem item) {
  ++undurable_[item.serial];
  made_.push_back(std::move(item));
}

void DoneQueue::hear(StageId stage, Version version) {
  heard_[stage.value] = std::max(heard_[stage.value], version);
  if (made_.empty() && writing_.empty()) settled_ = heard_;
}

DoneRecord DoneQueue::take() {
  const auto end = made_.begin() + static_cast<std::ptrdiff_t>(std::min(made_.size(), kDoneItemsMax));
  DoneRecord record{.items = {made_.begin(), end}, .heard = heard_};
  made_.erase(made_.begin(), end);
  writing_.insert(writing_.end(), record.items.begin(), record.items.end());
  record.all = writing_all_ = made_.empty();
  writing_heard_ = heard_;
  return record;
}

void DoneQueue::durable() {
  for (const DoneItem& item : writing_)
    if (const auto it = undurable_.find(item.serial); --it->second == 0) undurable_.erase(it);
  writing_.clear();
  if (writing_all_) settled_ = writing_heard_;
}

void DoneQueue::replayed(const std::vector<Version>& heard, bool all) {
  for (std::size_t k = 0; k < heard_.size(); ++k) heard_[k] = std::max(heard_[k], heard[k]);
  if (all) settled_ = heard_;
  made_.clear();
  undurable_.clear();
}

}  // namespace shoal
