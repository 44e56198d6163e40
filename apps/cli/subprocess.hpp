// Runs another program and takes what it prints.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace lockstep::cli {

struct ProgramResult {
  int exit_code = 0;
  double seconds = 0;
  std::string output;
};
/// Runs `arguments` (the first is the program) with extra environment variables; stderr passes through unless
/// `quiet`. Throws InputError if it cannot be started or dies.
ProgramResult run_program(const std::vector<std::string>& arguments,
                          const std::vector<std::pair<std::string, std::string>>& environment = {},
                          bool quiet = false);

/// The words that start this program again; empty ones stand for the executable.
void set_own_command(std::vector<std::string> words);
std::vector<std::string> own_command();
/// Whether this is the executable's process, not one of a host that holds the program.
bool runs_alone();

}  // namespace lockstep::cli
