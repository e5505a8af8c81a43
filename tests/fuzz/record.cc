// Records of the DHT: text of whoever is in its network.
#include "dht/record.h"

#include "common/crypto/text_codes.h"
#include "tests/dht/records.h"
#include "tests/fuzz/target.h"

namespace shoal::fuzz {
namespace {

const KeyPair& run_key() {
  static const KeyPair key = key_of_number(1);
  return key;
}
const KeyPair& peer_key() {
  static const KeyPair key = key_of_number(2);
  return key;
}

Result<std::string> pack(const PeerRecord& record) { return pack_record(record, peer_key()); }
Result<std::string> pack(const RunRecord& record) { return pack_record(record, run_key()); }
Result<std::string> pack(const StandingRecord& record) {
  const auto parts = pack_standing(record, run_key());
  if (!parts.ok()) return parts.error();
  if (parts->size() != 1) return make_error(ErrorCode::kTooLarge, "more than one part");
  return parts->front();
}

// The same text under a signature that fits, when it speaks for one of the two keys.
std::string mended(std::string_view text) {
  constexpr std::string_view kSignature = ",\"sig\":\"";
  const std::size_t at = text.rfind(kSignature);
  if (at == text.npos) return std::string(text);
  const std::string body(text.substr(0, at)), message = std::string(kRecordDomain) + body;
  const KeyPair& key = body.find("\"peer\"") == body.npos ? run_key() : peer_key();
  const Signature signature = key.sign({reinterpret_cast<const std::uint8_t*>(message.data()), message.size()});
  return body + std::string(kSignature) + base64url_of(signature) + "\"}";
}

bool take_text(std::string_view text) {
  const auto parsed = parse_any_record(text);
  if (!parsed.ok()) return false;
  (void)key_of(*parsed);
  (void)is_late(expires_of(*parsed), kTestWall);
  (void)is_from_future(expires_of(*parsed), kTestWall);
  if (signer_of(*parsed) != run_key().id() && signer_of(*parsed) != peer_key().id()) return true;
  if (const auto* told = std::get_if<StandingRecord>(&*parsed); told != nullptr && told->parts != 1) return true;
  const auto packed = std::visit([](const auto& record) { return pack(record); }, *parsed);
  if (!packed.ok()) {  // a number may be longer as we write it
    SHOAL_CHECK(packed.code() == ErrorCode::kTooLarge);
    return true;
  }
  const auto again = parse_any_record(*packed);
  SHOAL_CHECK(again.ok());
  SHOAL_CHECK(again->index() == parsed->index() && key_of(*again) == key_of(*parsed));
  SHOAL_CHECK_EQ(sequence_of(*again), sequence_of(*parsed));
  SHOAL_CHECK(expires_of(*again) == expires_of(*parsed));
  return true;
}

bool take(ByteView bytes) {
  const bool as_it_is = take_text(text_in(bytes));
  return take_text(mended(text_in(bytes))) || as_it_is;
}

std::vector<Bytes> seeds() {
  const RunRecord run = run_record(run_key(), 5, kTestWall);
  RunRecord ended = run;
  ended.ended = "all tokens are committed";
  StandingRecord told{.run = run.run, .peers = {{.tag = 7, .stage = StageId(1), .place = MemberRow::Place::kServing}}};
  told.state = RunState::kParked;
  told.since = kTestWall - 7s;
  told.stage = StageId(0);
  told.last = {"0123abcd"};
  told.sequence = 6;
  told.expires = run.expires;
  std::vector<Bytes> all;
  for (const std::string& text :
       {*pack(peer_record(run_key(), peer_key(), 3, 77, kTestWall)), *pack(run), *pack(ended), *pack(told)})
    all.push_back(Bytes::copy_of(text));
  return all;
}

}  // namespace

const Target record{"record", take, seeds};

}  // namespace shoal::fuzz
