#pragma once
// Routes of connections that were ended, whose last messages are ignored: the newest so many.
// Thread: one.
#include <cstddef>
#include <deque>
#include <set>
#include <string>

namespace shoal {

class BuriedRoutes {
 public:
  explicit BuriedRoutes(std::size_t max) : max_(max) {}
  bool holds(const std::string& route) const { return routes_.contains(route); }
  void bury(const std::string& route) {
    if (!routes_.insert(route).second) return;
    in_order_.push_back(route);
    if (in_order_.size() <= max_) return;
    routes_.erase(in_order_.front());
    in_order_.pop_front();
  }

 private:
  std::size_t max_;
  std::set<std::string> routes_;
  std::deque<std::string> in_order_;
};

}  // namespace shoal
