#include "common/program/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>
#include <utility>

#include "common/program/outcome.h"

namespace shoal {
namespace {

// CLI11 calls an option that came without a value "true".
std::string given_value(const std::string& value) { return value == "true" ? std::string() : value; }

}  // namespace

// ---- options ----
Option Option::required() { return Option(option_->required()); }
Option Option::type_name(const std::string& name) { return Option(option_->type_name(name)); }
Option Option::show_default() { return Option(option_->capture_default_str()); }
Option Option::one_at_a_time() { return Option(option_->allow_extra_args(false)); }
Option Option::separated_by(char mark) { return Option(option_->delimiter(mark)); }
Option Option::excludes(const Option& other) { return Option(option_->excludes(other.option_)); }
Option Option::needs(const Option& other) { return Option(option_->needs(other.option_)); }

Option Option::check(std::function<std::string(const std::string&)> check) {
  return Option(option_->check(std::move(check)));
}
Option Option::one_of(std::vector<std::string> choices) {
  return Option(option_->check(CLI::IsMember(std::move(choices))));
}

template <class T>
Option Option::in(T low, T high) {
  return Option(option_->check(CLI::Range(low, high)));
}
template Option Option::in(int, int);
template Option Option::in(unsigned, unsigned);
template Option Option::in(std::uint64_t, std::uint64_t);
template Option Option::in(double, double);

// CLI::Range lets NaN through.
Option Option::within(double low, double high) {
  std::ostringstream bounds;
  bounds << low << " - " << high;
  return Option(option_->check(CLI::Validator(
      [low, high, bounds = bounds.str()](const std::string& text) {
        double value = 0;
        const bool fits = CLI::detail::lexical_cast(text, value) && value >= low && value <= high;
        return fits ? std::string() : "Value " + text + " not in range " + bounds;
      },
      "FLOAT in [" + bounds.str() + "]")));
}

Option Option::bytes() { return Option(option_->transform(CLI::AsSizeValue(false))->check(CLI::PositiveNumber)); }

template <class T>
Option Option::with_units(const std::map<std::string, T>& units) {
  return Option(option_->transform(CLI::AsNumberWithUnit(units)));
}
template Option Option::with_units(const std::map<std::string, double>&);
template Option Option::with_units(const std::map<std::string, std::uint64_t>&);

// ---- commands ----
Command Command::add_subcommand(const std::string& name, const std::string& help) {
  return Command(app_->add_subcommand(name, help));
}
void Command::require_subcommand() { app_->require_subcommand(1); }
void Command::footer(const std::string& text) { app_->footer(text); }

template <class T>
Option Command::add_option(const std::string& names, T& value, const std::string& help) {
  return Option(app_->add_option(names, value, help));
}
template Option Command::add_option(const std::string&, std::string&, const std::string&);
template Option Command::add_option(const std::string&, std::vector<std::string>&, const std::string&);
template Option Command::add_option(const std::string&, double&, const std::string&);
template Option Command::add_option(const std::string&, int&, const std::string&);
template Option Command::add_option(const std::string&, std::uint16_t&, const std::string&);
template Option Command::add_option(const std::string&, std::uint32_t&, const std::string&);
template Option Command::add_option(const std::string&, std::uint64_t&, const std::string&);

Option Command::add_flag(const std::string& names, bool& value, const std::string& help) {
  return Option(app_->add_flag(names, value, help));
}
Option Command::add_flag(const std::string& names, int& times, const std::string& help) {
  return Option(app_->add_flag(names, times, help));
}

// The default of a flag of CLI11 could not be told from the same value where somebody named it.
Option Command::add_flag_with_value(const std::string& names, const std::string& help,
                                    std::function<std::string(const std::string&)> take) {
  const CLI::callback_t taken = [take](const CLI::results_t& values) {
    return take(given_value(values.front())).empty();
  };
  return Option(app_->add_option(names, taken, help)
                    ->expected(0)
                    ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
                    ->check([take](const std::string& value) { return take(given_value(value)); }));
}

void Command::when_named(std::function<void()> call) { app_->callback(std::move(call)); }

// ---- the command line ----
CommandLine::CommandLine(const std::string& help, const std::string& name, const std::string& version)
    : app_(std::make_unique<CLI::App>(help, name)) {
  app_->require_subcommand(0, 1);
  app_->fallthrough();
  app_->get_formatter()->column_width(28);
  app_->set_version_flag("--version", version, "print version and protocol, and exit");
}
CommandLine::~CommandLine() = default;

CommandLine::Parsed CommandLine::parse(int argc, char** argv) {
  Parsed parsed;
  try {
    app_->parse(argc, argv);
  } catch (const CLI::Success& help) {
    parsed.exit_code = app_->exit(help);
  } catch (const CLI::ParseError& error) {
    parsed.error = error.what();
    std::replace(parsed.error.begin(), parsed.error.end(), '\n', ' ');
    const auto extras = app_->remaining(true);
    if (extras.empty()) return parsed;
    parsed.unexpected = extras.front().substr(0, extras.front().find('='));
    std::vector<const CLI::App*> used{app_.get()};  // the program, its subcommand, and that one's
    while (!used.back()->get_subcommands().empty()) used.push_back(used.back()->get_subcommands().front());
    if (extras.front().starts_with("-")) {
      for (const CLI::App* from : used)
        for (const CLI::Option* option : from->get_options())
          parsed.known_there.push_back("--" + option->get_single_name());
    } else {
      for (const CLI::App* command : used.back()->get_subcommands([](const CLI::App*) { return true; }))
        parsed.known_there.push_back(command->get_name());
    }
  }
  return parsed;
}

std::optional<int> CommandLine::parse_or_say(int argc, char** argv) {
  const Parsed parsed = parse(argc, argv);
  if (parsed.exit_code || parsed.error.empty()) return parsed.exit_code;
  return fail(make_error(ErrorCode::kInput, parsed.error + " (see --help)"), kExitUsage);
}

bool CommandLine::named_has(const std::string& option) const {
  return std::ranges::any_of(app_->get_subcommands(),
                             [&](const CLI::App* command) { return command->get_option_no_throw(option) != nullptr; });
}

std::string CommandLine::help() const { return app_->help(); }

const char* version_of_cli11() { return CLI11_VERSION; }

}  // namespace shoal
