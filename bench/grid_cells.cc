#include "bench/grid_cells.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "common/os/executable.h"
#include "common/os/offspring.h"
#include "common/os/posix_file.h"
#include "common/os/stop_signals.h"
#include "common/os/thread_loop.h"
#include "demo/file_tail.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRowsBytesMax = std::size_t{64} << 20;
constexpr std::size_t kLinesShown = 4;

}  // namespace

Status RowsFile::read(const std::function<bool(const std::string& line)>& take) {
  if (!fs::exists(path_)) return {};
  SHOAL_ASSIGN(const Bytes bytes, read_file(path_, kRowsBytesMax));
  std::istringstream lines(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  std::size_t passed_over = 0;
  for (std::string line; std::getline(lines, line);)
    if (!take(line)) ++passed_over;
  ends_torn_ = bytes.size() > 0 && bytes.data()[bytes.size() - 1] != '\n';
  if (passed_over > 0)
    std::fprintf(stderr, "%s: %zu lines are no rows and were passed over\n", path_.c_str(), passed_over);
  return {};
}

Status RowsFile::append(const std::string& row) {
  std::ofstream file(path_, std::ios::binary | std::ios::app);
  if (std::exchange(ends_torn_, false)) file << '\n';
  file << row;
  file.close();
  if (!file) return make_error(ErrorCode::kIo, path_ + " cannot be written. HINT: does its folder exist?");
  return {};
}

Result<SoloCells> SoloCells::make(std::string shoal, int threads) {
  listen_for_stop();
  std::string folder = (fs::temp_directory_path() / "shoal-grid-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return make_error(ErrorCode::kIo, folder + " cannot be made");
  return SoloCells(std::move(shoal), threads, std::move(folder));
}

SoloCells::SoloCells(SoloCells&& other) noexcept
    : shoal_(std::move(other.shoal_)), threads_(other.threads_), folder_(std::exchange(other.folder_, {})) {}

SoloCells::~SoloCells() {
  std::error_code failure;
  if (!folder_.empty()) fs::remove_all(folder_, failure);
}

Result<std::string> SoloCells::train(const std::string& toml, const std::vector<std::string>& more,
                                     const std::string& cell) {
  const std::string run = folder_ + "/RUN.toml", output = folder_ + "/solo.out", error = folder_ + "/solo.err";
  SHOAL_TRY(replace_file(run, {Bytes::copy_of(std::string_view(toml))}));
  std::vector<std::string> words = {shoal_,     "solo", run,         "--json",
                                    "--device", "cpu",  "--threads", std::to_string(threads_)};
  words.insert(words.end(), more.begin(), more.end());
  SHOAL_ASSIGN(Offspring child, Offspring::start({std::move(words), output, error}));
  while (!child.wait_until(monotonic_now() + 100ms))
    if (stop_wanted()) return make_error(ErrorCode::kInterrupted, "interrupted; the rows that were written are kept");
  if (child.exit_code() != 0)
    return make_error(ErrorCode::kUnreachable,
                      "solo failed at " + cell + "; it said:" + last_lines(error, kLinesShown));
  std::ostringstream text;
  text << std::ifstream(output, std::ios::binary).rdbuf();
  return text.str();
}

int run_grid(const GridOptions& options, const std::function<Result<std::string>(SoloCells)>& grid) {
  const auto printed = [&]() -> Result<std::string> {
    std::string shoal = options.shoal;
    if (shoal.empty()) {
      SHOAL_ASSIGN(shoal, beside_own_program("shoal"));
    }
    SHOAL_ASSIGN(SoloCells cells, SoloCells::make(std::move(shoal), options.threads));
    return grid(std::move(cells));
  }();
  if (!printed.ok()) {
    std::fprintf(stderr, "shoal-bench: %s\n", printed.error().message.c_str());
    return 1;
  }
  std::fputs(printed->c_str(), stdout);
  return 0;
}

}  // namespace shoal
