#pragma once
// One node of the DHT on OpenDHT 2.4. Compiled into shoal-dht alone: OpenDHT is GPL-3+ and may be crashed by strangers
// (docs/dht.md).
//
// It stores a value of our type only when it is a record that fits: signed, of the key it is put under, not expired,
// and newer than what it would replace. Values of other types are stored as OpenDHT does. Thread: the interface from
// one thread; callbacks come on OpenDHT's own, must not block for long, and must not call back in.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/result.h"
#include "dht/child_protocol.h"

namespace shoal {

struct OpenDhtOptions {
  std::string bind = "0.0.0.0";
  std::uint16_t port = 0;     // 0: any
  std::uint32_t network = 0;  // not 0
  // Limits of one node. One address may host a dozen peers of a small run, so a quarter of all requests may come from
  // one.
  int requests_per_second = 4096;
  int requests_per_address = 1024;
  int searches = 512;
  long store_bytes = 16l << 20;
};

class OpenDhtMember {
 public:
  // ERRORS: kInput (network 0, bind address), kIo (port in use, no socket).
  static Result<std::unique_ptr<OpenDhtMember>> start(const OpenDhtOptions& options);
  virtual ~OpenDhtMember() = default;

  virtual std::uint16_t port() const = 0;
  // See DhtAccess.
  virtual void put(const PutCommand& command) = 0;
  virtual void withdraw(const WithdrawCommand& command) = 0;
  // Gives every distinct value once, at most kValuesPerGetMax of at most kRecordBytesMax bytes, then `done`.
  virtual void get(const std::string& key, std::function<void(const std::string&)> value,
                   std::function<void()> done) = 0;
  virtual void bootstrap(const std::string& address) = 0;
  virtual DhtStatus status() const = 0;
};

}  // namespace shoal
