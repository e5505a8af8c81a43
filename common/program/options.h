#pragma once
// The command line of a program: its commands, their options and flags, what a value is held to, and what --help says
// of all that. Only options.cc sees CLI11, which stands behind it. A value lands in the variable that its option was
// given, which outlives the parsing. Commands and options are names of what the command line owns, valid as long as
// that is. Thread: one.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace shoal {

// An option, a flag, or an argument by its place. Each function returns it again.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option required();
  Option type_name(const std::string& name);  // what --help calls its value
  Option show_default();                      // --help says what the variable holds
  Option one_at_a_time();                     // repeatable, with one value each time
  Option separated_by(char mark);             // several values may stand in one word
  Option excludes(const Option& other);
  Option needs(const Option& other);

  // What a value must be. `check` returns what is wrong with it, or nothing.
  Option check(std::function<std::string(const std::string& value)> check);
  Option one_of(std::vector<std::string> choices);
  // T: int, unsigned, std::uint64_t or double, as --help names it.
  template <class T>
  Option in(T low, T high);
  // A number, and no NaN, which is neither below nor above.
  Option within(double low, double high);
  // "8GiB", more than 0.
  Option bytes();
  // A number, with one of these behind it or none. T: double or std::uint64_t.
  template <class T>
  Option with_units(const std::map<std::string, T>& units);

 private:
  CLI::Option* option_;
};

class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  // Options of the commands above it may stand behind it too.
  Command add_subcommand(const std::string& name, const std::string& help);
  void require_subcommand();
  void footer(const std::string& text);  // below what --help says of it
  // `names`: "-o,--out", or one word without a dash for an argument by its place. T: std::string, a vector of them,
  // double, int, or an unsigned integer of 16, 32 or 64 bits.
  template <class T>
  Option add_option(const std::string& names, T& value, const std::string& help);
  Option add_flag(const std::string& names, bool& value, const std::string& help);
  Option add_flag(const std::string& names, int& times, const std::string& help);
  // A flag that may have a value, behind "=" alone: the word behind it stays an argument. `take` gets the value, empty
  // where there is none, and returns what is wrong with it.
  Option add_flag_with_value(const std::string& names, const std::string& help,
                             std::function<std::string(const std::string& value)> take);
  // Called by the parsing when this command was named.
  void when_named(std::function<void()> call);

 private:
  CLI::App* app_;
};

class CommandLine {
 public:
  CommandLine(const std::string& help, const std::string& name, const std::string& version);
  ~CommandLine();

  Command top() { return Command(app_.get()); }
  struct Parsed {
    std::optional<int> exit_code{};          // help or the version was printed
    std::string error{};                     // empty: none
    std::string unexpected{};                // the word that nothing takes; empty: it was something else
    std::vector<std::string> known_there{};  // what could stand in its place
  };
  Parsed parse(int argc, char** argv);
  // The same where nobody mends a mistake: says it on stderr. Returns the exit code where the program is to end.
  std::optional<int> parse_or_say(int argc, char** argv);
  // Whether a command that was named has this option.
  bool named_has(const std::string& option) const;
  std::string help() const;

 private:
  std::unique_ptr<CLI::App> app_;
};

const char* version_of_cli11();

}  // namespace shoal
