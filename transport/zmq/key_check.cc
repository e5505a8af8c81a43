#include "transport/zmq/key_check.h"

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

void KeyCheck::expect_trial(const CurveKey& key) {
  const std::lock_guard lock(mutex_);
  trial_ = hex_of_key(key);
}

bool KeyCheck::is_trial(const std::string& key_hex) const {
  const std::lock_guard lock(mutex_);
  return !key_hex.empty() && key_hex == trial_;
}

bool KeyCheck::open() const {
  const std::lock_guard lock(mutex_);
  return open_;
}

bool KeyCheck::admits(const std::string& key_hex) const {
  const std::lock_guard lock(mutex_);
  return open_ || keys_.contains(key_hex);
}

KeyCheck::Answer KeyCheck::answer(const std::vector<std::string>& request) const {
  // version, request id, domain, address, routing id, mechanism, credentials
  enum { kVersion, kRequest, kDomain, kAddress, kRoute, kMechanism, kKey, kParts };
  const std::string id = request.size() > kRequest ? request[kRequest] : "";
  const bool well_formed = request.size() == kParts && request[kVersion] == "1.0" && request[kDomain] == "shoal" &&
                           request[kMechanism] == "CURVE" && request[kKey].size() == std::tuple_size_v<CurveKey>;
  if (!well_formed) return {{"1.0", id, "400", "not a CURVE connection", "", ""}, false, "", ""};
  const std::string key = hex_of(reinterpret_cast<const std::uint8_t*>(request[kKey].data()), request[kKey].size());
  if (!admits(key)) return {{"1.0", id, "400", "this key is not admitted", "", ""}, false, key, request[kAddress]};
  return {{"1.0", id, "200", "OK", key, ""}, true, key, request[kAddress]};
}

}  // namespace shoal
