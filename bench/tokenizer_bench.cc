#include "bench/tokenizer_bench.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

#include "bench/python_rival.h"
#include "common/os/executable.h"
#include "common/os/offspring.h"
#include "common/os/posix_file.h"
#include "common/os/thread_loop.h"
#include "demo/file_tail.h"
#include "demo/work_folder.h"
#include "text/tokenizer.h"

namespace shoal {
namespace {

constexpr std::size_t kTextBytesMax = std::size_t{4} << 30;
constexpr Duration kPythonBudget = std::chrono::seconds(600);

using Ids = std::vector<std::uint32_t>;

std::vector<std::string_view> documents_of(std::string_view text, std::size_t size) {
  std::vector<std::string_view> documents;
  while (!text.empty()) {
    const std::size_t line = text.find('\n', std::min(text.size(), size - 1));
    documents.push_back(text.substr(0, line == std::string_view::npos ? text.size() : line + 1));
    text.remove_prefix(documents.back().size());
  }
  return documents;
}

// Seconds for all documents, each thread taking the next; `ids` of one thread are those of the text.
double encode_all(const Tokenizer& tokenizer, const std::vector<std::string_view>& documents, int threads, Ids& ids) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&](Ids& own) {
    for (std::size_t at = next++; at < documents.size(); at = next++) tokenizer.encode(documents[at], own);
  };
  std::vector<Ids> others(static_cast<std::size_t>(threads - 1));
  const TimePoint began = monotonic_now();
  std::vector<std::thread> running;
  for (Ids& own : others) running.emplace_back([&] { work(own); });
  work(ids);
  for (std::thread& thread : running) thread.join();
  return seconds_of(monotonic_now() - began);
}

struct Compared {
  double mb_s = 0;
  bool equal = false;
  std::string difference;
};

Result<Compared> compare(const TokenizerBenchOptions& options, const std::string& python, const std::string& folder,
                         const std::string& ids_path) {
  const std::string output = folder + "/python.out", error = folder + "/python.err";
  SHOAL_ASSIGN(const std::string program, own_program());
  SHOAL_ASSIGN(Offspring child,
               Offspring::start({{"/usr/bin/env", python, source_file(program, "package_tokenizer.py"),
                                  options.tokenizer, options.text, std::to_string(options.document_bytes), ids_path},
                                 output,
                                 error}));
  const auto code = child.wait_until(monotonic_now() + kPythonBudget);
  const auto lines = FileTail(output).new_lines();
  if (code != 0 || lines.empty()) {
    const auto said = FileTail(error).new_lines();
    return make_error(ErrorCode::kUnsupported,
                      "SHOAL_PYTHON=" + python + " compared nothing: " + (said.empty() ? "no answer" : said.back()) +
                          "\nHINT: it needs the package: " + python + " -m pip install tokenizers");
  }
  std::istringstream words(lines.back());
  Compared compared;
  std::string verdict;
  words >> compared.mb_s >> verdict;
  std::getline(words, compared.difference);
  compared.equal = verdict == "equal";
  return compared;
}

struct TokenizerFigures {
  double megabytes = 0, load_s = 0, mb_s = 0, mb_s_threads = 0;
  std::size_t ids = 0;
  std::optional<Compared> package;
};

Status write_ids(const std::string& path, const Ids& ids) {
  return replace_file(path, {Bytes::copy_of(bytes_of(std::span<const std::uint32_t>(ids)))});
}

Result<TokenizerFigures> measure(const TokenizerBenchOptions& options, const std::string& folder) {
  TokenizerFigures figures;
  const TimePoint began = monotonic_now();
  SHOAL_ASSIGN(const Tokenizer tokenizer, Tokenizer::load(options.tokenizer));
  figures.load_s = seconds_of(monotonic_now() - began);
  SHOAL_ASSIGN(const Bytes bytes, read_file(options.text, kTextBytesMax));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto documents = documents_of(text, options.document_bytes);
  figures.megabytes = static_cast<double>(text.size()) / 1e6;
  Ids ids, shared;
  figures.mb_s = figures.megabytes / encode_all(tokenizer, documents, 1, ids);
  figures.mb_s_threads = figures.megabytes / encode_all(tokenizer, documents, options.threads, shared);
  figures.ids = ids.size();
  const std::string ids_path = options.ids.empty() ? folder + "/ids" : options.ids;
  SHOAL_TRY(write_ids(ids_path, ids));
  if (const char* python = std::getenv("SHOAL_PYTHON"); python != nullptr && *python != '\0') {
    SHOAL_ASSIGN(figures.package, compare(options, python, folder, ids_path));
  }
  return figures;
}

void print_table(const TokenizerBenchOptions& options, const TokenizerFigures& figures) {
  std::printf("%.1f MB became %zu ids; the tokenizer was loaded in %.2f s\n", figures.megabytes, figures.ids,
              figures.load_s);
  std::printf("%-28s %8.2f MB/s\n", "one thread", figures.mb_s);
  std::printf("%-28s %8.2f MB/s\n", (std::to_string(options.threads) + " threads").c_str(), figures.mb_s_threads);
  if (!figures.package) return;
  std::printf("%-28s %8.2f MB/s, and its ids are %s%s\n", "tokenizers, one thread", figures.package->mb_s,
              figures.package->equal ? "equal" : "different:", figures.package->difference.c_str());
}

void print_json(const TokenizerBenchOptions& options, const TokenizerFigures& figures) {
  nlohmann::ordered_json line = {{"schema", "shoal.bench.tokenizer/1"},
                                 {"tokenizer", options.tokenizer},
                                 {"text", options.text},
                                 {"text_mb", figures.megabytes},
                                 {"ids", figures.ids},
                                 {"load_s", figures.load_s},
                                 {"text_mb_s", figures.mb_s},
                                 {"threads", options.threads},
                                 {"threads_mb_s", figures.mb_s_threads}};
  if (figures.package) {
    line["tokenizers_mb_s"] = figures.package->mb_s;
    line["equal"] = figures.package->equal;
    if (!figures.package->equal) line["difference"] = figures.package->difference;
  }
  std::printf("%s\n", line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

}  // namespace

Status run_tokenizer_bench(const TokenizerBenchOptions& options) {
  SHOAL_ASSIGN(const WorkFolder folder, WorkFolder::make("tokenizer"));
  SHOAL_ASSIGN(const TokenizerFigures figures, measure(options, folder.path()));
  options.json ? print_json(options, figures) : print_table(options, figures);
  if (figures.package && !figures.package->equal) return make_error(ErrorCode::kInput, "the ids differ");
  return {};
}

}  // namespace shoal
