// Tickets: text of whoever invites.
#include "runtime/config/ticket.h"

#include "common/crypto/text_codes.h"
#include "tests/fuzz/target.h"

namespace shoal::fuzz {
namespace {

bool take_text(std::string_view text) {
  const auto parsed = parse_ticket(text);
  if (!parsed.ok()) return false;
  const auto packed = pack_ticket(*parsed);
  SHOAL_CHECK(packed.ok());
  SHOAL_CHECK(*parse_ticket(*packed) == *parsed);
  return true;
}

// As text, and as what stands behind a ticket's checksum.
bool take(ByteView bytes) {
  const bool as_it_is = take_text(text_in(bytes));
  return take_text("shoal1:" + checked_base64url_of(bytes)) || as_it_is;
}

std::vector<Bytes> seeds() {
  Ticket ticket{.run = {}, .network = 7, .contacts = {{{}, "198.51.100.7:7741"}}};
  ticket.run.bytes.fill(1);
  ticket.contacts.push_back({PeerId{ticket.run.bytes}, "[2001:db8::17]:443"});
  ticket.contacts.push_back({{}, "swarm.example.org:65535"});
  const std::string text = *pack_ticket(ticket);
  const std::vector<std::uint8_t> body = *parse_checked_base64url(std::string_view(text).substr(7));
  ticket.contacts = {{{}, "via/198.51.100.7:443"}, {PeerId{ticket.run.bytes}, "via/relay.example.org:443"}};
  return {Bytes::copy_of(text), Bytes::from_vector(body), Bytes::copy_of(*pack_ticket(ticket))};
}

}  // namespace

const Target ticket{"ticket", take, seeds};

}  // namespace shoal::fuzz
