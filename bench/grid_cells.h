#pragma once
// What every grid of trainings does: each cell is one `shoal solo` in a process of its own, and its row is appended to
// a file at once, so that a grid goes on where it was stopped. Thread: one; blocking.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/result.h"

namespace shoal {

// JSON lines, appended to.
class RowsFile {
 public:
  explicit RowsFile(std::string path) : path_(std::move(path)) {}
  // Gives every line there is to `take`, which says whether it is a row; what a killed bench left torn is none, and is
  // trained again. No file is no row. ERRORS: kIo, kTooLarge.
  Status read(const std::function<bool(const std::string& line)>& take);
  // `row` ends with a newline. ERRORS: kIo.
  Status append(const std::string& row);
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool ends_torn_ = false;
};

// Trains cells, and has a temporary folder for it, which is removed in the end.
class SoloCells {
 public:
  // `shoal`: the program; `threads` of the CPU. ERRORS: kIo.
  static Result<SoloCells> make(std::string shoal, int threads);
  SoloCells(SoloCells&& other) noexcept;
  SoloCells(const SoloCells&) = delete;
  ~SoloCells();

  // What `shoal solo` of this run file printed with --json and the arguments `more`. `cell` names it in errors. ERRORS:
  // kUnreachable (it failed: with its last words), kInterrupted (a signal), kIo.
  Result<std::string> train(const std::string& toml, const std::vector<std::string>& more, const std::string& cell);
  const std::string& folder() const { return folder_; }

 private:
  SoloCells(std::string shoal, int threads, std::string folder)
      : shoal_(std::move(shoal)), threads_(threads), folder_(std::move(folder)) {}
  std::string shoal_;
  int threads_;
  std::string folder_;
};

// What every grid is asked for beside what it trains (GridSetting).
struct GridOptions {
  std::string rows{};  // path of the file of rows
  std::vector<std::uint64_t> seeds{};
  int threads = 1;  // of each training
  bool json = false;
  std::string shoal{};  // the program that trains; empty: the one that lies beside this program
};
// Prints on stdout what `grid` comes to. Returns the exit code: 0, or 1 with the reason on stderr.
int run_grid(const GridOptions& options, const std::function<Result<std::string>(SoloCells)>& grid);

}  // namespace shoal
