// The page on one run of a city that a planner prints: what was computed, maps, the course at points, what is left out.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::urban {

struct PageTable {
  std::string title;
  std::vector<std::vector<std::string>> rows;
};

struct RunPageFiles {
  std::string folder;                                          ///< as the reader names it
  std::string_view record;                                     ///< text of run.json
  std::vector<std::vector<std::string>> points;                ///< rows of poi.csv, the header first; or none
  std::vector<std::pair<std::string, std::string>> summaries;  ///< names and bytes of pictures
  std::vector<std::pair<std::string, std::string>> steps;
  /// Of a comparison of the run with another one: titles and rows of tables (the head first), and pictures.
  std::vector<PageTable> change_tables;
  std::vector<std::pair<std::string, std::string>> changes;
  std::vector<PageTable> areas;  ///< of `urban stats`
};

struct RunPage {
  std::string title, body;
};
/// None where the record is not one of `urban run`.
std::optional<RunPage> run_page(const RunPageFiles& files);

}  // namespace lockstep::urban
