#include "io/problems/bal.hpp"

#include <fmt/format.h>

#include <iterator>

#include "core/files/atomic_file.hpp"
#include "io/text/parse_file.hpp"
#include "io/text/text_scanner.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
BalProblem parse_bal(std::string_view text, std::string_view where) {
  TextScanner scan(text, std::string(where));
  const int64_t cameras = scan.integer_anywhere("the number of cameras", 1, INT32_MAX),
                points = scan.integer_anywhere("the number of points", 1, INT32_MAX),
                observations = scan.integer_anywhere("the number of observations", 1, INT64_MAX / 64);
  // Each number takes a digit and a separator, so nothing is allocated that the file cannot fill.
  const int64_t numbers = 4 * observations + 9 * cameras + 3 * points;
  if (int64_t(text.size()) < 2 * numbers)
    scan.fail(fmt::format("{} cameras, {} points and {} observations in {} bytes", cameras, points,
                          observations, text.size()),
              "as many numbers as the first line announces");
  BalProblem problem;
  problem.claim = InputClaim(8.0 * double(numbers + observations), "its numbers", where);
  problem.indices.resize(size_t(2 * observations));
  problem.observations.resize(size_t(2 * observations));
  problem.lines.resize(size_t(observations));
  for (size_t k = 0; k < size_t(observations); ++k) {
    problem.indices[2 * k] = int32_t(scan.integer_anywhere("the camera of an observation", 0, cameras - 1));
    problem.indices[2 * k + 1] = int32_t(scan.integer_anywhere("the point of an observation", 0, points - 1));
    problem.observations[2 * k] = scan.number_anywhere("x of an observation");
    problem.observations[2 * k + 1] = scan.number_anywhere("y of an observation");
    problem.lines[k] = scan.line();
  }
  problem.cameras.resize(size_t(9 * cameras));
  for (double& value : problem.cameras) value = scan.number_anywhere("a number of a camera");
  problem.points.resize(size_t(3 * points));
  for (double& value : problem.points) value = scan.number_anywhere("a coordinate of a point");
  if (!scan.at_file_end())
    scan.fail(fmt::format("'{}' follows the last point", shown(scan.field())), "the end of the file");
  return problem;
}

BalProblem read_bal(const std::filesystem::path& path) {
  return parse_packed_file(path, "a bundle adjustment problem in BAL's text format", &parse_bal);
}

void write_bal(const std::filesystem::path& path, const BalProblem& problem) {
  AtomicFile file(path);
  fmt::memory_buffer text;
  const auto flush_at = [&](size_t size) {
    if (text.size() < size) return;
    file.write(std::string_view(text.data(), text.size()));
    text.clear();
  };
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "{} {} {}\n", problem.camera_count(), problem.point_count(),
                 problem.observation_count());
  for (size_t k = 0; k < size_t(problem.observation_count()); ++k) {
    fmt::format_to(out, "{} {} {} {}\n", problem.indices[2 * k], problem.indices[2 * k + 1],
                   problem.observations[2 * k], problem.observations[2 * k + 1]);
    flush_at(1 << 20);
  }
  for (const std::vector<double>* numbers : {&problem.cameras, &problem.points})
    for (const double value : *numbers) {
      fmt::format_to(out, "{}\n", value);
      flush_at(1 << 20);
    }
  flush_at(0);
  file.commit();
}

}  // namespace lockstep::io
