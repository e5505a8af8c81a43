#pragma once
// How the fields of a message become msgpack objects and come back: one template each way, chosen by the field's type.
// Included by transport/envelope.cc only: `Packer` and `Object` are msgpack's, so that this header sees no library.
//
// Arrays for structs, lists, ids and sessions; bin for keys, byte strings and lists of serials; nil for an absent
// optional; no maps, no extensions. Reading is strict: type, number of fields, range of every integer and enumerator,
// length of every text and list.
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include "transport/limits.h"
#include "transport/messages.h"
#include "transport/serial_list.h"

namespace shoal::fields {

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsKey : std::false_type {};
template <class Tag>
struct IsKey<Key32<Tag>> : std::true_type {};
template <class T>
struct IsStrongInt : std::false_type {};
template <class Tag, class Rep>
struct IsStrongInt<StrongInt<Tag, Rep>> : std::true_type {};

constexpr PeerRole last_of(PeerRole) { return PeerRole::kObserver; }
constexpr ForwardKind last_of(ForwardKind) { return ForwardKind::kEvaluate; }
constexpr BusyReason last_of(BusyReason) { return BusyReason::kAhead; }
constexpr CommitState last_of(CommitState) { return CommitState::kDropped; }
constexpr HopPhase last_of(HopPhase) { return HopPhase::kStranded; }
constexpr TextAnswer last_of(TextAnswer) { return TextAnswer::kRefused; }
constexpr Reach last_of(Reach) { return Reach::kDirect; }
constexpr ReportKind last_of(ReportKind) { return ReportKind::kFailed; }
constexpr RefusalCause last_of(RefusalCause) { return RefusalCause::kOther; }

// The ids have no fields() of their own: common/ knows nothing of the wire.
template <class T>
auto fields_of(T& item) {
  return item.fields();
}
inline auto fields_of(const Session& s) { return std::tie(s.peer_tag, s.incarnation); }
inline auto fields_of(Session& s) { return std::tie(s.peer_tag, s.incarnation); }
inline auto fields_of(const EntryName& t) { return std::tie(t.session, t.serial); }
inline auto fields_of(EntryName& t) { return std::tie(t.session, t.serial); }
inline auto fields_of(const Lease& l) { return std::tie(l.session, l.serial); }
inline auto fields_of(Lease& l) { return std::tie(l.session, l.serial); }
inline auto fields_of(const MicrobatchId& m) { return std::tie(m.trainer, m.serial); }
inline auto fields_of(MicrobatchId& m) { return std::tie(m.trainer, m.serial); }

// Limits that differ by message: only a manifest's body is a long text.
template <class M>
constexpr std::size_t text_max() {
  return std::is_same_v<M, Manifest> ? limits::kBodyMax : limits::kTextMax;
}

// And a member list is a long byte string.
template <class M>
constexpr std::size_t bytes_max() {
  constexpr bool list = std::is_same_v<M, Members> || std::is_same_v<M, MembersChange>;
  return list ? limits::kListBytesMax : limits::kBodyMax;
}

// Appends values to a msgpack packer; remembers the first limit that was passed.
template <class Packer>
class FieldWriter {
 public:
  FieldWriter(Packer& packer, std::size_t text_max, std::size_t bytes_max)
      : packer_(packer), text_max_(text_max), bytes_max_(bytes_max) {}
  const char* beyond() const { return beyond_; }

  template <class T>
  void put(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      value ? packer_.pack_true() : packer_.pack_false();
    } else if constexpr (std::is_enum_v<T>) {
      packer_.pack_uint64(static_cast<std::uint64_t>(value));
    } else if constexpr (std::is_unsigned_v<T>) {
      packer_.pack_uint64(value);
    } else if constexpr (std::is_same_v<T, double>) {
      put_double(value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!fits(value.size(), text_max_, "text")) return;
      packer_.pack_str(static_cast<std::uint32_t>(value.size()));
      packer_.pack_str_body(value.data(), static_cast<std::uint32_t>(value.size()));
    } else if constexpr (std::is_same_v<T, std::vector<std::uint8_t>>) {
      if (fits(value.size(), bytes_max_, "byte string")) put_bin(value.data(), value.size());
    } else if constexpr (std::is_same_v<T, std::vector<std::uint64_t>>) {
      const Result<std::vector<std::uint8_t>> packed = pack_serials(value);
      if (packed.ok() && value.size() <= serials_left_) {
        serials_left_ -= value.size();
        return put_bin(packed->data(), packed->size());
      }
      if (!beyond_) beyond_ = "list of serials";
      packer_.pack_nil();
    } else if constexpr (IsKey<T>::value) {
      put_bin(value.bytes.data(), value.bytes.size());
    } else if constexpr (IsStrongInt<T>::value) {
      put(value.value);
    } else if constexpr (IsOptional<T>::value) {
      value ? put(*value) : void(packer_.pack_nil());
    } else if constexpr (IsVector<T>::value) {
      if (!fits(value.size(), limits::kListMax, "list")) return;
      packer_.pack_array(static_cast<std::uint32_t>(value.size()));
      for (const auto& item : value) put(item);
    } else {
      const auto members = fields_of(value);
      packer_.pack_array(static_cast<std::uint32_t>(std::tuple_size_v<decltype(members)>));
      std::apply([this](const auto&... member) { (put(member), ...); }, members);
    }
  }

 private:
  void put_bin(const std::uint8_t* bytes, std::size_t size) {
    packer_.pack_bin(static_cast<std::uint32_t>(size));
    packer_.pack_bin_body(reinterpret_cast<const char*>(bytes), static_cast<std::uint32_t>(size));
  }
  // By hand: the library turns 2.0 into an integer, and the reader wants one type per field.
  void put_double(double value) {
    std::uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    char bytes[9] = {static_cast<char>(0xcb)};
    for (int i = 0; i < 8; ++i) bytes[1 + i] = static_cast<char>(bits >> (56 - 8 * i));
    packer_.pack_bin_body(bytes, sizeof bytes);
  }
  bool fits(std::size_t size, std::size_t limit, const char* what) {
    if (size <= limit) return true;
    if (!beyond_) beyond_ = what;
    packer_.pack_nil();
    return false;
  }

  Packer& packer_;
  std::size_t text_max_, bytes_max_;
  std::size_t serials_left_ = limits::kSerialsMax;  // over all lists of the message: a few bytes can stand for many
  const char* beyond_ = nullptr;
};

// Reads values out of unpacked msgpack objects; after the first mismatch ok() is false and error() says which.
// `Kind` is the enumeration of object types, with msgpack's own names for them.
template <class Object, class Kind>
class FieldReader {
 public:
  // `older`: a struct may lack fields at its end.
  FieldReader(std::size_t text_max, std::size_t bytes_max, bool older)
      : text_max_(text_max), bytes_max_(bytes_max), older_(older) {}
  bool ok() const { return !error_.has_value(); }
  const Error& error() const { return *error_; }

  template <class T>
  void get(const Object& from, T& to) {
    if (!ok()) return;
    if constexpr (std::is_same_v<T, bool>) {
      if (expect(from.type == Kind::BOOLEAN, "a boolean")) to = from.via.boolean;
    } else if constexpr (std::is_enum_v<T>) {
      std::uint64_t number = 0;
      get_unsigned(from, static_cast<std::uint64_t>(last_of(T{})), number);
      to = static_cast<T>(number);
    } else if constexpr (std::is_unsigned_v<T>) {
      std::uint64_t number = 0;
      get_unsigned(from, std::numeric_limits<T>::max(), number);
      to = static_cast<T>(number);
    } else if constexpr (std::is_same_v<T, double>) {
      if (expect(from.type == Kind::FLOAT64, "a 64-bit float")) to = from.via.f64;
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (expect(from.type == Kind::STR, "a text") && fits(from.via.str.size, text_max_, "text"))
        to.assign(from.via.str.ptr, from.via.str.size);
    } else if constexpr (std::is_same_v<T, std::vector<std::uint8_t>>) {
      if (!expect(from.type == Kind::BIN, "a byte string") || !fits(from.via.bin.size, bytes_max_, "byte string"))
        return;
      const auto* begin = reinterpret_cast<const std::uint8_t*>(from.via.bin.ptr);
      to.assign(begin, begin + from.via.bin.size);
    } else if constexpr (std::is_same_v<T, std::vector<std::uint64_t>>) {
      if (expect(from.type == Kind::BIN, "a list of serials as bytes")) get_serials(from, to);
    } else if constexpr (IsKey<T>::value) {
      if (expect(from.type == Kind::BIN && from.via.bin.size == to.bytes.size(), "32 bytes"))
        std::memcpy(to.bytes.data(), from.via.bin.ptr, to.bytes.size());
    } else if constexpr (IsStrongInt<T>::value) {
      get(from, to.value);
    } else if constexpr (IsOptional<T>::value) {
      to.reset();
      if (from.type != Kind::NIL) get(from, to.emplace());
    } else if constexpr (IsVector<T>::value) {
      get_list(from, to);
    } else {
      get_fields(from, fields_of(to));
    }
  }

 private:
  void get_serials(const Object& from, std::vector<std::uint64_t>& to) {
    Result<std::vector<std::uint64_t>> parsed =
        parse_serials({reinterpret_cast<const std::uint8_t*>(from.via.bin.ptr), from.via.bin.size}, serials_left_);
    if (!parsed.ok()) {
      error_ = parsed.error();
      return;
    }
    to = *std::move(parsed);
    serials_left_ -= to.size();
  }
  template <class T>
  void get_list(const Object& from, std::vector<T>& to) {
    to.clear();
    if (!expect(from.type == Kind::ARRAY, "a list") || !fits(from.via.array.size, limits::kListMax, "list")) return;
    to.reserve(from.via.array.size);
    for (std::uint32_t i = 0; i < from.via.array.size && ok(); ++i) get(from.via.array.ptr[i], to.emplace_back());
  }
  template <class Tuple>
  void get_fields(const Object& from, Tuple members) {
    constexpr std::uint32_t count = std::tuple_size_v<Tuple>;
    if (!expect(from.type == Kind::ARRAY, "an array of fields")) return;
    const std::uint32_t size = from.via.array.size;
    if (!expect(older_ ? size <= count : size == count, "as many fields as this protocol version has")) return;
    std::uint32_t index = 0;
    const auto next = [&](auto& member) {
      if (index < size) get(from.via.array.ptr[index++], member);
    };
    std::apply([&](auto&... member) { (next(member), ...); }, members);
  }
  void get_unsigned(const Object& from, std::uint64_t limit, std::uint64_t& to) {
    if (!expect(from.type == Kind::POSITIVE_INTEGER, "an unsigned integer")) return;
    if (expect(from.via.u64 <= limit, "an integer in its range")) to = from.via.u64;
  }
  bool expect(bool holds, const char* what) {
    if (!holds && ok()) error_ = make_error(ErrorCode::kMalformed, std::string("expected ") + what);
    return holds;
  }
  bool fits(std::size_t size, std::size_t limit, const char* what) {
    if (size > limit && ok()) {
      error_ = make_error(ErrorCode::kTooLarge,
                          std::string(what) + " of " + std::to_string(size) + ", limit " + std::to_string(limit));
    }
    return size <= limit;
  }

  std::size_t text_max_, bytes_max_;
  bool older_;
  std::size_t serials_left_ = limits::kSerialsMax;
  std::optional<Error> error_;
};

}  // namespace shoal::fields
