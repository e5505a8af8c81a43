// What shells complete and what the manual says are the options that --help lists, of every command.
#include <filesystem>
#include <ranges>
#include <set>
#include <sstream>

#include "tests/live/processes.h"

namespace shoal {
namespace {

using Words = std::vector<std::string>;

std::string printed(Processes& programs, Words words) {
  programs.start("print", std::move(words));
  EXPECT_EQ(programs.exit_code("print"), 0);
  return programs.output("print");
}

Words lines_of(const std::string& text) {
  Words lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// From the text for people: "  -v,--verbose    more", "  join      lend ...".
struct Help {
  std::set<std::string> options, commands;
};

Help help_of(Processes& programs, const Words& command) {
  Words words = command;
  words.push_back("--help");
  Help help;
  bool below = false;
  for (const std::string& line : lines_of(printed(programs, words))) {
    if (!line.starts_with("  ")) below = line.starts_with("Subcommands:");
    if (!line.starts_with("  ") || line.starts_with("   ")) continue;
    std::istringstream first(line.substr(0, line.find(' ', 2)));
    for (std::string name; std::getline(first, name, ',');) {
      name.erase(0, name.find_first_not_of(' '));
      if (below) help.commands.insert(name);
      if (name.starts_with("-")) help.options.insert(name);
    }
  }
  return help;
}

std::map<Words, Help> every_command(Processes& programs, const Words& top = {}) {
  std::map<Words, Help> all{{top, help_of(programs, top)}};
  for (const std::string& name : std::set<std::string>(all[top].commands)) {
    Words below = top;
    below.push_back(name);
    all.merge(every_command(programs, below));
  }
  return all;
}

// What bash offers behind each of the lines; the last word of a line is the one being typed.
std::vector<std::set<std::string>> offers(Processes& programs, const std::vector<Words>& lines) {
  std::string script = "compopt() { :; }\ncd \"$(dirname \"$0\")\"\nsource ./completion\n";
  for (const Words& line : lines) {
    script += "COMP_WORDS=(shoal";
    for (const std::string& word : line) script += " '" + word + "'";
    script += "); COMP_CWORD=" + std::to_string(line.size()) + "; COMPREPLY=(); _shoal; echo \"${COMPREPLY[*]}\"\n";
  }
  programs.write_file("completion", printed(programs, {"completion", "bash"}));
  programs.start_words("bash", {"/bin/bash", programs.write_file("ask.sh", script)});
  EXPECT_EQ(programs.exit_code("bash"), 0) << programs.errors("bash");
  EXPECT_EQ(programs.errors("bash"), "");
  std::vector<std::set<std::string>> all;
  for (const std::string& line : lines_of(programs.output("bash"))) {
    std::istringstream in(line);
    std::set<std::string>& words = all.emplace_back();
    for (std::string word; in >> word;) words.insert(word);
  }
  EXPECT_EQ(all.size(), lines.size());
  all.resize(lines.size());
  return all;
}

TEST(LiveShellHelpTest, BashOffersTheOptionsAndCommandsOfHelp) {
  Processes programs;
  const std::map<Words, Help> commands = every_command(programs);
  ASSERT_GT(commands.size(), 20u);
  std::vector<Words> typed;
  for (Words line : std::views::keys(commands)) {
    line.push_back("-");
    typed.push_back(line);
    line.back().clear();
    typed.push_back(line);
  }
  const auto offered = offers(programs, typed);
  std::size_t at = 0;
  for (const auto& [command, help] : commands) {
    std::set<std::string> options = help.options;
    for (const std::string& option : commands.at({}).options)
      if (option != "--version") options.insert(option);
    EXPECT_EQ(offered[at], options) << ::testing::PrintToString(command);
    for (const std::string& name : help.commands) EXPECT_TRUE(offered[at + 1].contains(name)) << name;
    at += 2;
  }
}

TEST(LiveShellHelpTest, BashOffersChoicesFilesAndFolders) {
  Processes programs;
  programs.write_file("run.toml", "");
  std::filesystem::create_directory(programs.path("saved"));
  const auto offered = offers(programs, {{"join", "--events-level", ""},
                                         {"--json", "join", "--events-level", "f"},
                                         {"data", "pre"},
                                         {"init", "--text", "ru"},
                                         {"launch", "ru"},
                                         {"join", "--checkpoints", "sav"},
                                         {"join", "--stage", ""},
                                         {"join", "--home", "sav"},
                                         {"completion", ""}});
  const std::vector<std::set<std::string>> expected{
      {"full", "entries", "rounds"}, {"full"}, {"prepare"}, {"run.toml"}, {"run.toml"}, {"saved"}, {}, {"saved"},
      {"bash", "zsh", "fish"}};
  EXPECT_EQ(offered, expected);
}

TEST(LiveShellHelpTest, ThePagesOfTheManualHaveEveryOptionOfHelp) {
  Processes programs;
  printed(programs, {"man", "--to", programs.path("pages")});
  const std::map<Words, Help> commands = every_command(programs);
  for (const auto& [command, help] : commands) {
    std::string name = "shoal";
    for (const std::string& word : command) name += "-" + word;
    const std::string page = ScratchFolder::read(programs.path("pages") + "/" + name + ".1");
    EXPECT_NE(page.find(".SH NAME\n"), std::string::npos) << name;
    for (const std::string& option : help.options) {
      std::string bold = "\\fB";
      for (const char c : option) bold += c == '-' ? std::string("\\-") : std::string(1, c);
      EXPECT_NE(page.find(bold + "\\fR"), std::string::npos) << name << " lacks " << option;
    }
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(programs.path("pages")), {}),
            static_cast<std::ptrdiff_t>(commands.size()));
  EXPECT_EQ(printed(programs, {"man", "data", "prepare"}),
            ScratchFolder::read(programs.path("pages/shoal-data-prepare.1")));
}

TEST(LiveShellHelpTest, AnUnknownShellOrCommandIsRefused) {
  Processes programs;
  programs.start("shell", {"completion", "tcsh"});
  EXPECT_EQ(programs.exit_code("shell"), 64);
  programs.start("page", {"man", "jion"});
  EXPECT_EQ(programs.exit_code("page"), 64);
  EXPECT_NE(programs.errors("page").find("\"shoal jion\" is no command"), std::string::npos);
}

// Where the shell or the formatter is installed: its own judgement.
TEST(LiveShellHelpTest, ShellsAndTheFormatterTakeWhatIsPrinted) {
  struct Judge {
    std::string program;
    Words words;  // the file is put behind them
    Words prints;
  };
  const std::vector<Judge> judges{{"/usr/bin/zsh", {"-n"}, {"completion", "zsh"}},
                                  {"/usr/bin/fish", {"-n"}, {"completion", "fish"}},
                                  {"/usr/bin/groff", {"-man", "-Tutf8", "-ww", "-z"}, {"man", "launch"}}};
  int judged = 0;
  Processes programs;
  for (const Judge& judge : judges) {
    if (!std::filesystem::exists(judge.program)) continue;
    Words words = judge.words;
    words.insert(words.begin(), judge.program);
    words.push_back(programs.write_file("judged", printed(programs, judge.prints)));
    programs.start_words("judge", words);
    EXPECT_EQ(programs.exit_code("judge"), 0) << judge.program;
    EXPECT_EQ(programs.errors("judge"), "") << judge.program;
    ++judged;
  }
  if (judged == 0) GTEST_SKIP() << "neither zsh nor fish nor groff is installed";
}

}  // namespace
}  // namespace shoal
