#include "transport/key_check.h"

namespace shoal {

std::string hex_of_key(const CurveKey& key) { return hex_of(key.data(), key.size()); }

void KeyCheck::admit(const CurveKey& key) {
  const std::lock_guard lock(mutex_);
  keys_.insert(hex_of_key(key));
}

void KeyCheck::dismiss(const CurveKey& key) {
  const std::lock_guard lock(mutex_);
  keys_.erase(hex_of_key(key));
}

void KeyCheck::admit_only(const std::vector<CurveKey>& keys) {
  const std::lock_guard lock(mutex_);
  open_ = false;
  keys_.clear();
  for (const CurveKey& key : keys) keys_.insert(hex_of_key(key));
}

bool KeyCheck::open() const {
  const std::lock_guard lock(mutex_);
  return open_;
}

bool KeyCheck::admits(const std::string& key_hex) const {
  const std::lock_guard lock(mutex_);
  return open_ || keys_.contains(key_hex);
}

std::vector<std::string> KeyCheck::answer(const std::vector<std::string>& request) {
  // version, request id, domain, address, routing id, mechanism, credentials
  enum { kVersion, kRequest, kDomain, kAddress, kRoute, kMechanism, kKey, kParts };
  const std::string id = request.size() > kRequest ? request[kRequest] : "";
  const bool well_formed = request.size() == kParts && request[kVersion] == "1.0" && request[kDomain] == "shoal" &&
                           request[kMechanism] == "CURVE" && request[kKey].size() == std::tuple_size_v<CurveKey>;
  if (!well_formed) return {"1.0", id, "400", "not a CURVE connection", "", ""};
  const std::string key = hex_of(reinterpret_cast<const std::uint8_t*>(request[kKey].data()), request[kKey].size());
  if (!admits(key)) return {"1.0", id, "400", "this key is not admitted", "", ""};
  return {"1.0", id, "200", "OK", key, ""};
}

}  // namespace shoal
