// The traces of a launcher's processes as one file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/parallel.hpp"

namespace lockstep::cli {

/// Of a process other than rank 0: a trace in a file of its own until rank 0 takes it. Opens the global trace.
class RankTrace {
 public:
  RankTrace();
  ~RankTrace();
  RankTrace(const RankTrace&) = delete;
  /// Closes the trace; its text.
  std::string take();

 private:
  std::filesystem::path file_;
};

/// Added to this process's times it makes them those of rank 0. Collective.
double clock_shift_us(const parallel::Group& group);
/// Puts the events of other ranks (texts by rank, empty where there are none; times already shifted) into rank 0's file.
/// Each rank is a process of its own there.
void join_traces(const std::filesystem::path& file, const std::vector<std::string>& by_rank);
/// A trace with the times of rank 0.
std::string shifted_trace(const std::string& text, double shift_us);

}  // namespace lockstep::cli
