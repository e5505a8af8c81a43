#pragma once
// A log whose sums fit, of any bytes.
#include <algorithm>

#include "common/byte_codec.h"
#include "common/record_log.h"

namespace shoal::fuzz {

// The bytes as records: u16 length, payload, and so on. Each is synced before the next one is appended.
inline std::vector<std::uint8_t> framed(ByteView bytes, const LogFormat& format) {
  std::vector<std::uint8_t> log;
  RecordFramer framer(format);
  while (bytes.size() > 2) {
    const std::size_t size = std::clamp<std::size_t>(get_le<std::uint16_t>(bytes, 0), 1,
                                                     std::min(bytes.size() - 2, format.record_bytes_max));
    const Bytes record = framer.frame(bytes.subspan(2, size));
    log.insert(log.end(), record.data(), record.data() + record.size());
    framer.synced(log.size());
    bytes = bytes.subspan(2 + size);
  }
  return log;
}

// What framed() takes for these records.
inline Bytes unframed(const std::vector<Bytes>& records) {
  ByteWriter out;
  for (const Bytes& record : records) {
    out.put(static_cast<std::uint16_t>(record.size()));
    out.bytes(record);
  }
  return std::move(out).take();
}

}  // namespace shoal::fuzz
