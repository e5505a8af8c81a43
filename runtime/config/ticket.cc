#include "runtime/config/ticket.h"

#include <arpa/inet.h>

#include <cctype>

#include "common/crypto/text_codes.h"
#include "common/log.h"
#include "common/os/own_addresses.h"

namespace shoal {
namespace {

constexpr std::string_view kPrefix = "shoal1:";
constexpr std::uint8_t kName = 0, kV4 = 4, kV6 = 6, kRunsOwn = 16, kVia = 32;

class Packer {
 public:
  void byte(std::uint8_t value) { bytes_.push_back(value); }
  void big_endian(std::uint32_t value, int size) {
    for (int shift = 8 * (size - 1); shift >= 0; shift -= 8) byte(static_cast<std::uint8_t>(value >> shift));
  }
  void bytes(ByteView view) { bytes_.insert(bytes_.end(), view.begin(), view.end()); }
  const std::vector<std::uint8_t>& result() const { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
};

// Reads in order; after a read beyond the end everything is zero and ok() is false.
class Unpacker {
 public:
  explicit Unpacker(ByteView bytes) : rest_(bytes) {}
  ByteView bytes(std::size_t size) {
    if (size > rest_.size()) {
      ok_ = false;
      return {};
    }
    const ByteView taken = rest_.first(size);
    rest_ = rest_.subspan(size);
    return taken;
  }
  std::uint32_t big_endian(std::size_t size) {
    std::uint32_t value = 0;
    for (std::uint8_t byte : bytes(size)) value = value << 8 | byte;
    return value;
  }
  template <class Tag>
  void key(Key32<Tag>& out) {
    const ByteView view = bytes(out.bytes.size());
    std::copy(view.begin(), view.end(), out.bytes.begin());
  }
  bool ok() const { return ok_; }
  bool at_end() const { return rest_.empty(); }

 private:
  ByteView rest_;
  bool ok_ = true;
};

void pack_contact(const Contact& contact, const DialAddress& dialled, const RunId& run, Packer& out) {
  const HostPort& address = dialled.control;
  in_addr v4;
  in6_addr v6;
  const bool is_v4 = inet_pton(AF_INET, address.host.c_str(), &v4) == 1;
  const bool is_v6 = !is_v4 && inet_pton(AF_INET6, address.host.c_str(), &v6) == 1;
  const bool runs_own = contact.peer.bytes == run.bytes;
  out.byte(static_cast<std::uint8_t>((is_v4   ? kV4
                                      : is_v6 ? kV6
                                              : kName) +
                                     (runs_own ? kRunsOwn : 0) + (dialled.via ? kVia : 0)));
  if (!runs_own) out.bytes(contact.peer.bytes);
  if (is_v4) {
    out.bytes({reinterpret_cast<const std::uint8_t*>(&v4), sizeof v4});
  } else if (is_v6) {
    out.bytes({reinterpret_cast<const std::uint8_t*>(&v6), sizeof v6});
  } else {
    out.byte(static_cast<std::uint8_t>(address.host.size()));
    out.bytes({reinterpret_cast<const std::uint8_t*>(address.host.data()), address.host.size()});
  }
  out.big_endian(address.port, 2);
}

bool unpack_contact(Unpacker& in, const RunId& run, Contact& out) {
  const std::uint32_t kind = in.big_endian(1);
  if ((kind & kRunsOwn) != 0) {
    out.peer.bytes = run.bytes;
  } else {
    in.key(out.peer);
  }
  DialAddress dialled{.control = {}, .via = (kind & kVia) != 0};
  HostPort& address = dialled.control;
  char text[INET6_ADDRSTRLEN] = {};
  const std::uint32_t family = kind & ~std::uint32_t{kRunsOwn | kVia};
  if (family == kV4 || family == kV6) {
    const ByteView raw = in.bytes(family == kV4 ? 4 : 16);
    if (!in.ok() || inet_ntop(family == kV4 ? AF_INET : AF_INET6, raw.data(), text, sizeof text) == nullptr)
      return false;
    address.host = text;
  } else if (family == kName) {
    const ByteView raw = in.bytes(in.big_endian(1));
    address.host.assign(raw.begin(), raw.end());
    if (!is_host_name(address.host)) return false;
  } else {
    return false;
  }
  address.port = static_cast<std::uint16_t>(in.big_endian(2));
  out.address = dialled.text();
  return in.ok() && address.port != 0;
}

Result<std::string> resolved_contact(const std::string& contact, bool v6) {
  SHOAL_ASSIGN(DialAddress address, parse_dial_address(contact));
  SHOAL_ASSIGN(const std::string resolved, resolved_address(address.control.text(), v6));
  SHOAL_ASSIGN(address.control, parse_host_port(resolved));
  return address.text();
}

}  // namespace

Result<std::string> pack_ticket(const Ticket& ticket) {
  if (ticket.contacts.empty() || ticket.contacts.size() > kTicketContactsMax) {
    return make_error(ErrorCode::kInput,
                      "a ticket names one to three addresses, not " + std::to_string(ticket.contacts.size()));
  }
  Packer out;
  out.bytes(ticket.run.bytes);
  out.big_endian(ticket.network, 4);
  out.byte(static_cast<std::uint8_t>(ticket.contacts.size()));
  for (const Contact& contact : ticket.contacts) {
    SHOAL_ASSIGN(const DialAddress address, parse_dial_address(contact.address));
    if (address.bulk_port != 0)
      return make_error(ErrorCode::kInput, "a ticket names no port of a bulk lane, as " + contact.address + " does");
    pack_contact(contact, address, ticket.run, out);
  }
  std::string text = std::string(kPrefix) + checked_base64url_of(out.result());
  if (text.size() > kTicketCharactersMax) {
    return make_error(ErrorCode::kTooLarge,
                      "the ticket would have " + std::to_string(text.size()) +
                          " characters, allowed are 300: advertise IP addresses instead of long names");
  }
  return text;
}

std::string bare_ticket(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
  const auto is_of_ticket = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
  };
  std::string bare;
  for (const char c : text)
    if (!is_space(c)) bare += c;
  while (!bare.empty() && !is_of_ticket(bare.front())) bare.erase(0, 1);
  if (bare.starts_with("ticket")) bare.erase(0, 6);
  while (!bare.empty() && !is_of_ticket(bare.front())) bare.erase(0, 1);
  while (!bare.empty() && !is_of_ticket(bare.back())) bare.pop_back();
  return bare.starts_with("shoal") && bare.substr(0, 12).find(':') != std::string::npos ? bare : std::string(text);
}

Result<Ticket> parse_ticket(std::string_view told) {
  const std::string bare = bare_ticket(told);
  const std::string_view text = bare;
  if (!text.starts_with(kPrefix)) {
    if (text.starts_with("shoal") && text.substr(0, 12).find(':') != std::string_view::npos) {
      return make_error(ErrorCode::kVersion,
                        "this ticket starts with \"" + std::string(text.substr(0, text.find(':') + 1)) +
                            "\", this program reads \"shoal1:\": use the version of shoal that made it");
    }
    return make_error(ErrorCode::kMalformed, "this is no ticket: a ticket starts with \"shoal1:\"");
  }
  if (text.size() > kTicketCharactersMax)
    return make_error(ErrorCode::kMalformed, "this is no ticket: it is longer than 300 characters");
  const auto bytes = parse_checked_base64url(text.substr(kPrefix.size()));
  const auto typo = [] {
    return make_error(ErrorCode::kCorrupt,
                      "the ticket has a typo or is cut: its checksum does not fit. Copy it again, whole");
  };
  if (!bytes.ok()) return typo();
  Unpacker in(*bytes);
  Ticket ticket;
  in.key(ticket.run);
  ticket.network = in.big_endian(4);
  const std::uint32_t count = in.big_endian(1);
  const auto damaged = [] { return make_error(ErrorCode::kMalformed, "the ticket is damaged: ask for a new one"); };
  if (!in.ok() || count == 0 || count > kTicketContactsMax) return damaged();
  for (std::uint32_t i = 0; i < count; ++i) {
    Contact contact;
    if (!unpack_contact(in, ticket.run, contact)) return damaged();
    ticket.contacts.push_back(std::move(contact));
  }
  if (!in.at_end()) return damaged();
  return ticket;
}

Result<std::vector<std::string>> contacts_of(const Ticket& ticket) {
  std::vector<std::string> contacts;
  std::optional<Error> failure;
  for (const Contact& contact : ticket.contacts) {
    auto resolved = resolved_contact(contact.address, false);
    if (!resolved.ok()) resolved = resolved_contact(contact.address, true);
    if (resolved.ok()) {
      contacts.push_back(*std::move(resolved));
    } else {
      failure = resolved.error();
    }
  }
  if (contacts.empty()) return failure.value_or(make_error(ErrorCode::kInput, "the ticket names no address"));
  if (failure) log_warning(failure->message);
  return contacts;
}

}  // namespace shoal
