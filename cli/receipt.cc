// shoal receipt write|verify: what each peer's owner has of a run, signed with the run's key.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/outcome.h"
#include "cli/program.h"
#include "common/crypto/sign.h"
#include "common/hex.h"
#include "common/log.h"
#include "common/status_line.h"
#include "events/audit/audit.h"
#include "page/accepted_work.h"
#include "runtime/config/home.h"

namespace shoal {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSchema = "shoal.receipt/1", kSigned = R"(,"signature":")";

// What is signed is the line up to there, so that nobody has to write it anew to judge it.
ByteView signed_part(std::string_view line) {
  return {reinterpret_cast<const std::uint8_t*>(line.data()), line.size()};
}

std::string receipt_line(const KeyPair& key, std::uint64_t peer,
                         const std::map<std::uint16_t, AcceptedWork::OfStage>& stages) {
  std::uint64_t tokens = 0;
  Json list = Json::array();
  for (const auto& [stage, work] : stages) {
    if (work.targets.empty()) continue;
    std::uint64_t here = 0;
    for (const auto& [serial, targets] : work.targets) here += targets;
    tokens += here;
    list.push_back({{"stage", stage}, {"tokens", here}, {"microbatches", ranges_text(work.targets)}});
  }
  if (list.empty()) return {};
  std::string line = Json{
      {"schema", kSchema},
      {"run", hex_of(key.id())},
      {"peer", hex_of_word(peer)},
      {"tokens", tokens},
      {"stages", list}}.dump();
  line.pop_back();
  const Signature signature = key.sign(signed_part(line));
  return line + std::string(kSigned) + hex_of(signature.data(), signature.size()) + "\"}";
}

struct ReceiptArguments {
  std::string events, folder, file, run;
};

Status write_receipts(const ReceiptArguments& arguments) {
  SHOAL_ASSIGN(const KeyPair key, load_run_key(arguments.folder, true));
  HeadwayMeter meter;
  const auto progress = [&meter](const char* what) {
    return [&meter, what](std::uint64_t bytes, std::uint64_t of) {
      show_headway(meter, {.what = what, .done = bytes, .total = of, .bytes = true});
    };
  };
  SHOAL_ASSIGN(const AuditReport audit, audit_folder(arguments.events, progress("auditing")));
  end_status();
  if (audit.verdict() == AuditVerdict::kViolated)
    return make_error(ErrorCode::kCorrupt, arguments.events +
                                               ": the audit finds violations, and what is not counted "
                                               "right is not signed. HINT: shoal audit " +
                                               arguments.events);
  SHOAL_ASSIGN(const AcceptedWork work, accepted_work(arguments.events, progress("reading event files")));
  end_status();
  if (work.run.bytes != key.id().bytes)
    return make_error(ErrorCode::kInput, arguments.folder + " is run " + short_name(key.id()) + ", and the events in " +
                                             arguments.events + " are of run " + short_name(work.run));
  for (const auto& [peer, stages] : work.peers)
    if (const std::string line = receipt_line(key, peer, stages); !line.empty()) std::printf("%s\n", line.c_str());
  return {};
}

struct ReadReceipt {
  PeerId run;
  std::string peer;
  std::uint64_t tokens = 0;
};

Result<Signature> signature_of(std::string_view digits) {
  Signature signature;
  SHOAL_ASSIGN(const auto first, parse_hex32(digits.substr(0, 64)));
  SHOAL_ASSIGN(const auto second, parse_hex32(digits.substr(64)));
  std::copy(first.begin(), first.end(), signature.begin());
  std::copy(second.begin(), second.end(), signature.begin() + 32);
  return signature;
}

// ERRORS: kMalformed, kCorrupt (the signature is not of its run's key).
Result<ReadReceipt> read_receipt(const std::string& line) {
  const auto malformed = [] { return make_error(ErrorCode::kMalformed, "no receipt (shoal.receipt/1)"); };
  const std::size_t end = line.rfind(kSigned);
  const auto json = Json::parse(line, nullptr, false);
  if (end == std::string::npos || !json.is_object() || json.value("schema", "") != kSchema) return malformed();
  const auto run = json.find("run"), peer = json.find("peer"), tokens = json.find("tokens"),
             signature = json.find("signature");
  for (const auto& text : {run, peer, signature})
    if (text == json.end() || !text->is_string()) return malformed();
  if (tokens == json.end() || !tokens->is_number_unsigned()) return malformed();
  SHOAL_ASSIGN(const auto key, parse_hex32(run->get<std::string>()));
  const std::string digits = signature->get<std::string>();
  if (line.substr(end) != std::string(kSigned) + digits + "\"}" || digits.size() != 128) return malformed();
  SHOAL_ASSIGN(const Signature given, signature_of(digits));
  ReadReceipt receipt{
      .run = {key}, .peer = printable(peer->get<std::string>()), .tokens = tokens->get<std::uint64_t>()};
  if (!verify(receipt.run, signed_part(std::string_view(line).substr(0, end)), given))
    return make_error(ErrorCode::kCorrupt, "the signature is not that of run " + short_name(receipt.run));
  return receipt;
}

int verify_receipts(const ReceiptArguments& arguments) {
  std::ifstream file(arguments.file, std::ios::binary);
  if (!file) return fail(make_error(ErrorCode::kMissing, arguments.file + ": cannot be read"));
  std::string line;
  std::uint64_t number = 0, bad = 0;
  while (std::getline(file, line)) {
    const std::string place = arguments.file + ":" + std::to_string(++number) + ": ";
    const auto receipt = read_receipt(line);
    if (!receipt.ok()) {
      ++bad;
      std::printf("%s%s\n", place.c_str(), receipt.error().message.c_str());
    } else if (!arguments.run.empty() && hex_of(receipt->run) != arguments.run) {
      ++bad;
      std::printf("%sit is of run %s\n", place.c_str(), hex_of(receipt->run).c_str());
    } else {
      std::printf("%sok: run %s had %llu tokens from peer %s\n", place.c_str(), hex_of(receipt->run).c_str(),
                  static_cast<unsigned long long>(receipt->tokens), receipt->peer.c_str());
    }
  }
  if (bad == 0 && number > 0) return kExitOk;
  return fail(make_error(ErrorCode::kCorrupt, number == 0 ? arguments.file + ": is empty"
                                                          : std::to_string(bad) + " of " + std::to_string(number) +
                                                                " receipts are not good"));
}

}  // namespace

void add_receipt(CLI::App& app, Program& program) {
  CLI::App* group = app.add_subcommand(
      "receipt", "what a run had from each peer, by microbatch, signed with the run's key: write, verify");
  group->require_subcommand(1);
  auto arguments = std::make_shared<ReceiptArguments>();
  CLI::App* write =
      group->add_subcommand("write", "a line for each peer, of event files that the audit finds no fault with");
  write->add_option("events", arguments->events, "folder with the files that --events wrote")
      ->required()
      ->type_name("DIR");
  write->add_option("folder", arguments->folder, "the run's folder (--dir), which has its key")
      ->required()
      ->type_name("RUN.run");
  run_when_named(*write, program, [arguments](const GlobalOptions&) {
    const Status written = write_receipts(*arguments);
    return written.ok() ? kExitOk : fail(written.error());
  });
  CLI::App* check = group->add_subcommand("verify", "whether each line is signed by the key of the run that it names");
  check->add_option("file", arguments->file, "with receipts")->required()->type_name("FILE");
  check->add_option("--run", arguments->run, "the run's key, 64 hex digits, which it must be")->type_name("HEX");
  run_when_named(*check, program, [arguments](const GlobalOptions&) { return verify_receipts(*arguments); });
}

}  // namespace shoal
