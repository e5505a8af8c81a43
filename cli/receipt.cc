// shoal receipt write|verify: what each peer's owner has of a run, signed with the run's key.
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "cli/program.h"
#include "common/crypto/sign.h"
#include "common/hex.h"
#include "common/log.h"
#include "common/program/outcome.h"
#include "common/status_line.h"
#include "events/audit/audit.h"
#include "events/headway.h"
#include "runtime/config/home.h"

namespace shoal {
namespace {

using ReceiptJson = nlohmann::ordered_json;

constexpr std::string_view kSchema = "shoal.receipt/1", kSigned = R"(,"signature":")";
// A line has some two million ranges of microbatches at most, and no more of a stranger's file is held at once.
constexpr std::size_t kReceiptBytesMax = std::size_t{16} << 20;

struct Receipt {
  struct OfStage {
    std::uint64_t stage = 0, tokens = 0;
    std::string microbatches;  // "0-17,19"
  };
  PeerId run;  // the run's key
  std::string peer;
  std::string name;  // what its owner called it; empty, and left out of the text: nothing
  std::vector<OfStage> stages;

  std::uint64_t tokens() const {
    std::uint64_t sum = 0;
    for (const OfStage& here : stages) sum += here.tokens;
    return sum;
  }
};

// What is signed: the one text of this receipt up to its signature. Its schema stands first, which tells it from
// everything else that the key signs.
std::string signed_text(const Receipt& receipt) {
  ReceiptJson list = ReceiptJson::array();
  for (const Receipt::OfStage& here : receipt.stages)
    list.push_back({{"stage", here.stage}, {"tokens", here.tokens}, {"microbatches", here.microbatches}});
  ReceiptJson json = {{"schema", kSchema}, {"run", hex_of(receipt.run)}, {"peer", receipt.peer}};
  if (!receipt.name.empty()) json["name"] = receipt.name;
  json["tokens"] = receipt.tokens();
  json["stages"] = list;
  std::string text = json.dump();
  text.pop_back();
  return text;
}

ByteView bytes_of(std::string_view text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }

std::string line_of(const std::string& text, const Signature& signature) {
  return text + std::string(kSigned) + hex_of(signature.data(), signature.size()) + "\"}";
}

Receipt receipt_of(const KeyPair& key, std::uint64_t peer, const AcceptedWork& work) {
  Receipt receipt{.run = key.id(), .peer = hex_of_word(peer), .name = {}, .stages = {}};
  if (const auto name = work.names.find(peer); name != work.names.end()) receipt.name = name->second;
  for (const auto& [stage, here] : work.peers.at(peer)) {
    std::uint64_t tokens = 0;
    for (const auto& [serial, targets] : here) tokens += targets;
    receipt.stages.push_back({.stage = stage, .tokens = tokens, .microbatches = ranges_text(here)});
  }
  return receipt;
}

struct ReceiptArguments {
  std::string events, folder, file, run;
};

Status write_receipts(const ReceiptArguments& arguments) {
  SHOAL_ASSIGN(const KeyPair key, load_run_key(arguments.folder, true));
  HeadwayMeter meter;
  SHOAL_ASSIGN(const AcceptedWork work,
               accepted_work(arguments.events, [&meter](std::uint64_t bytes, std::uint64_t of) {
                 show_headway(meter, {.what = "auditing", .done = bytes, .total = of, .bytes = true});
               }));
  end_status();
  if (work.audit.verdict() == AuditVerdict::kViolated)
    return make_error(ErrorCode::kCorrupt, arguments.events +
                                               ": the audit finds violations, and what is not counted "
                                               "right is not signed. HINT: shoal audit " +
                                               arguments.events);
  if (work.run.bytes != key.id().bytes)
    return make_error(ErrorCode::kInput, arguments.folder + " is run " + short_name(key.id()) + ", and the events in " +
                                             arguments.events + " are of run " + short_name(work.run));
  for (const auto& [peer, stages] : work.peers) {
    const std::string text = signed_text(receipt_of(key, peer, work));
    const std::string line = line_of(text, key.sign(bytes_of(text)));
    if (line.size() > kReceiptBytesMax)
      return make_error(ErrorCode::kTooLarge, "the receipt of peer " + hex_of_word(peer) + " is larger than 16 MiB");
    std::printf("%s\n", line.c_str());
  }
  return {};
}

Result<Signature> signature_of(std::string_view digits) {
  if (digits.size() != 128) return make_error(ErrorCode::kMalformed, "a signature has 128 hex digits");
  Signature signature;
  SHOAL_ASSIGN(const auto first, parse_hex32(digits.substr(0, 64)));
  SHOAL_ASSIGN(const auto second, parse_hex32(digits.substr(64)));
  std::copy(first.begin(), first.end(), signature.begin());
  std::copy(second.begin(), second.end(), signature.begin() + 32);
  return signature;
}

// What a line says, be it signed or not. A field of another type, or one that lacks, throws.
Receipt said_by(const ReceiptJson& json, std::string& signature) {
  Receipt receipt{.run = {}, .peer = json.at("peer").get<std::string>(), .name = json.value("name", ""), .stages = {}};
  if (const auto run = parse_hex32(json.at("run").get<std::string>()); run.ok()) receipt.run.bytes = *run;
  for (const ReceiptJson& here : json.at("stages"))
    receipt.stages.push_back({.stage = here.at("stage").get<std::uint64_t>(),
                              .tokens = here.at("tokens").get<std::uint64_t>(),
                              .microbatches = here.at("microbatches").get<std::string>()});
  signature = json.at("signature").get<std::string>();
  return receipt;
}

// A receipt has one text, and nothing but that is one: no other order, no key twice, nothing more.
// ERRORS: kMalformed, kCorrupt (the signature is not of its run's key).
Result<Receipt> read_receipt(std::string_view line) {
  const auto malformed = [] { return make_error(ErrorCode::kMalformed, "no receipt (shoal.receipt/1)"); };
  Receipt receipt;
  std::string digits;
  try {
    receipt = said_by(ReceiptJson::parse(line), digits);
  } catch (const ReceiptJson::exception&) {
    return malformed();
  }
  const auto signature = signature_of(digits);
  const std::string text = signed_text(receipt);
  if (!signature.ok() || line != line_of(text, *signature)) return malformed();
  if (!verify(receipt.run, bytes_of(text), *signature))
    return make_error(ErrorCode::kCorrupt, "the signature is not that of run " + short_name(receipt.run));
  return receipt;
}

// Whether it is good; says so.
bool judge(const std::string& place, std::string_view line, const std::optional<PeerId>& wanted) {
  const auto receipt = read_receipt(line);
  if (!receipt.ok()) return std::printf("%s%s\n", place.c_str(), receipt.error().message.c_str()), false;
  const std::string run = hex_of(receipt->run);
  if (wanted && *wanted != receipt->run) return std::printf("%sit is of run %s\n", place.c_str(), run.c_str()), false;
  const std::string called = receipt->name.empty() ? "" : " (" + printable(receipt->name) + ")";
  std::printf("%sok: run %s had %llu tokens from peer %s%s\n", place.c_str(), run.c_str(),
              static_cast<unsigned long long>(receipt->tokens()), printable(receipt->peer).c_str(), called.c_str());
  return true;
}

int verify_receipts(const ReceiptArguments& arguments) {
  std::optional<PeerId> wanted;
  if (!arguments.run.empty()) {
    const auto run = parse_hex32(arguments.run);
    if (!run.ok()) return fail(make_error(ErrorCode::kInput, "--run: " + run.error().message), kExitUsage);
    wanted = PeerId{*run};
  }
  std::ifstream file(arguments.file, std::ios::binary);
  if (!file) return fail(make_error(ErrorCode::kMissing, arguments.file + ": cannot be read"));
  std::vector<char> line(kReceiptBytesMax + 2);  // its newline, and the end that the stream writes
  std::uint64_t number = 0, bad = 0;
  const auto place = [&] { return arguments.file + ":" + std::to_string(number) + ": "; };
  while (file.getline(line.data(), static_cast<std::streamsize>(line.size()))) {
    const auto taken = static_cast<std::size_t>(file.gcount());
    ++number;
    bad += !judge(place(), {line.data(), taken - (file.eof() ? 0 : 1)}, wanted);
  }
  if (file.bad()) return fail(make_error(ErrorCode::kIo, arguments.file + ": cannot be read"));
  if (!file.eof()) {
    ++number;
    return fail(make_error(ErrorCode::kTooLarge, place() + "longer than any receipt (16 MiB)"));
  }
  if (number == 0) return fail(make_error(ErrorCode::kCorrupt, arguments.file + ": is empty"));
  if (bad == 0) return kExitOk;
  return fail(make_error(ErrorCode::kCorrupt,
                         std::to_string(bad) + " of " + std::to_string(number) + " receipts are not good"));
}

}  // namespace

void add_receipt(Command& app, Program& program) {
  Command group = app.add_subcommand(
      "receipt", "what a run had from each peer, by microbatch, signed with the run's key: write, verify");
  group.require_subcommand();
  auto arguments = std::make_shared<ReceiptArguments>();
  Command write =
      group.add_subcommand("write", "a line for each peer, of event files that the audit finds no fault with");
  write.add_option("events", arguments->events, "folder with the files that --events wrote")
      .required()
      .type_name("DIR");
  write.add_option("folder", arguments->folder, "the run's folder (--dir), which has its key")
      .required()
      .type_name("RUN.run");
  run_when_named(write, program, [arguments](const GlobalOptions&) {
    const Status written = write_receipts(*arguments);
    return written.ok() ? kExitOk : fail(written.error());
  });
  Command check = group.add_subcommand("verify", "whether each line is signed by the key of the run that it names");
  check.add_option("file", arguments->file, "with receipts").required().type_name("FILE");
  check.add_option("--run", arguments->run, "the run's key, 64 hex digits, which it must be").type_name("HEX");
  run_when_named(check, program, [arguments](const GlobalOptions&) { return verify_receipts(*arguments); });
}

}  // namespace shoal
