#pragma once
// Which keys may connect: asked by libzmq (ZAP, RFC 27) about the CURVE key of everyone who does, before anything of
// theirs is read.
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "common/crypto/sign.h"
#include "common/ids.h"

namespace shoal {

std::string hex_of_key(const CurveKey& key);

// Thread: any.
class KeyCheck {
 public:
  // `open`: everybody whose key can be proved.
  explicit KeyCheck(bool open) : open_(open) {}
  void admit(const CurveKey& key);
  void dismiss(const CurveKey& key);
  void admit_only(const std::vector<CurveKey>& keys);  // never open again
  // This key's refusals are our own trial's and nobody's offence.
  void expect_trial(const CurveKey& key);
  bool is_trial(const std::string& key_hex) const;
  bool open() const;
  bool admits(const std::string& key_hex) const;

  // The answer to one ZAP request. A request that breaks the format is refused.
  struct Answer {
    std::vector<std::string> parts;
    bool admitted = false;
    std::string key;      // hex; empty in a request that breaks the format
    std::string address;  // of what connects, as far as libzmq knows it
  };
  Answer answer(const std::vector<std::string>& request) const;

 private:
  mutable std::mutex mutex_;
  bool open_;                   // guarded by mutex_
  std::set<std::string> keys_;  // hex; guarded by mutex_
  std::string trial_;           // hex; guarded by mutex_
};

}  // namespace shoal
