#include "solve/datasets/nist.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "io/text/parse_file.hpp"
#include "solve/datasets/expression.hpp"
#include "solve/minimize/checkpoint.hpp"

namespace lockstep::solve {
namespace {

constexpr double kCertifiedDigits = 11;

std::string_view trimmed(std::string_view text) {
  const auto space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\0'; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return text;
}
std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> out;
  for (;;) {
    text = trimmed(text);
    if (text.empty()) return out;
    const size_t end = std::min(text.find_first_of(" \t"), text.size());
    out.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}
bool starts_with(std::string_view line, std::string_view label) {
  line = trimmed(line);
  if (line.size() < label.size()) return false;
  for (size_t k = 0; k < label.size(); ++k)
    if (std::tolower(static_cast<unsigned char>(line[k])) !=
        std::tolower(static_cast<unsigned char>(label[k])))
      return false;
  return true;
}
std::optional<double> number(std::string_view word) {
  if (!word.empty() && word.front() == '+') word.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}
bool is_name(std::string_view word) {
  if (word.empty() || std::isdigit(static_cast<unsigned char>(word[0]))) return false;
  return std::all_of(word.begin(), word.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; });
}

/// Reads the sections in the order in which the files have them.
class Reader {
 public:
  Reader(std::string_view text, const std::string& where) : where_(where) {
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      lines_.push_back(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  NistProblem read() {
    seek("Dataset Name:", "the line \"Dataset Name:\"");
    const auto name = words(after("Dataset Name:"));
    if (name.empty()) fail("no name", "the dataset's name");
    nist_.name = std::string(name[0]);
    seek("Model:", "the line \"Model:\"");
    ++at_;
    read_model();
    read_table();
    nist_.residual_sum_of_squares = labelled("Residual Sum of Squares:");
    nist_.residual_standard_deviation = labelled("Residual Standard Deviation:");
    nist_.degrees_of_freedom = int(count("Degrees of Freedom:"));
    const int64_t observations = count("Number of Observations:");
    read_data(observations);
    check_names();
    return std::move(nist_);
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& expected) const {
    throw InputError(what, fmt::format("{}:{}", where_, std::min(at_, lines_.size()) + 1), expected);
  }
  void seek(std::string_view label, const std::string& expected) {
    const size_t first = at_;
    while (at_ < lines_.size() && !starts_with(lines_[at_], label)) ++at_;
    if (at_ < lines_.size()) return;
    at_ = first;
    fail(fmt::format("no line \"{}\"", label), expected);
  }
  std::string_view after(std::string_view label) const {
    return trimmed(trimmed(lines_[at_]).substr(label.size()));
  }
  double labelled(std::string_view label) {
    seek(label, "it after the certified values");
    const auto found = words(after(label));
    const auto value = found.empty() ? std::nullopt : number(found[0]);
    if (!value) fail(fmt::format("no number after \"{}\"", label), "a finite number");
    if (*value < 0) fail(fmt::format("{}", *value), "a number that is not negative");
    return *value;
  }
  int64_t count(std::string_view label) {
    const double value = labelled(label);
    if (value != std::floor(value) || value > 1e9) fail(fmt::format("{}", value), "a whole number up to 1e9");
    return int64_t(value);
  }

  /// Lines between the count of parameters and the table of starts: definitions of numbers, then the model,
  /// which may run over several lines.
  void read_model() {
    std::string text;
    size_t first = at_;
    for (; at_ < lines_.size() && !starts_with(lines_[at_], "Starting"); ++at_) {
      const std::string_view line = trimmed(lines_[at_]);
      if (line.empty() || (text.empty() && line.find('=') == std::string_view::npos)) continue;
      const size_t equals = line.find('=');
      if (text.empty() && is_name(trimmed(line.substr(0, equals))) &&
          number(trimmed(line.substr(equals + 1)))) {
        const std::string_view constant = trimmed(line.substr(0, equals));
        if (constant != "pi") fail(fmt::format("definition of {}", constant), "only pi before the model");
        continue;
      }
      if (text.empty()) first = at_;
      text += text.empty() ? "" : " ";
      text += line;
    }
    const size_t equals = text.find('=');
    if (equals == std::string::npos)
      fail("no model", "a line such as \"y = b1*x + e\" before the starting values");
    if (text.find('=', equals + 1) != std::string::npos) fail("two models", "one \"=\"");
    std::string_view right = trimmed(std::string_view(text).substr(equals + 1));
    if (right.size() > 1 && right.back() == 'e') {  // the error term
      const std::string_view rest = trimmed(right.substr(0, right.size() - 1));
      if (!rest.empty() && rest.back() == '+') right = trimmed(rest.substr(0, rest.size() - 1));
    }
    nist_.response = std::string(trimmed(std::string_view(text).substr(0, equals)));
    nist_.model = std::string(right);
    model_line_ = first;
  }

  void read_table() {
    seek("Starting", "the table of starting values");
    for (++at_; at_ < lines_.size() && !starts_with(lines_[at_], "Residual"); ++at_) {
      const std::string_view line = trimmed(lines_[at_]);
      const size_t equals = line.find('=');
      if (equals == std::string_view::npos) continue;
      const std::string_view name = trimmed(line.substr(0, equals));
      const auto fields = words(line.substr(equals + 1));
      if (!is_name(name) || fields.size() != 4)
        fail("row of the starting values", "\"name = start1 start2 certified deviation\"");
      std::vector<double> values;
      for (const std::string_view field : fields) {
        const auto value = number(field);
        if (!value) fail(fmt::format("\"{}\"", field), "a finite number");
        values.push_back(*value);
      }
      if (std::find(nist_.parameters.begin(), nist_.parameters.end(), name) != nist_.parameters.end())
        fail(fmt::format("parameter {} twice", name), "each once");
      nist_.parameters.emplace_back(name);
      nist_.starts[0].push_back(values[0]);
      nist_.starts[1].push_back(values[1]);
      nist_.certified.push_back(values[2]);
      nist_.deviations.push_back(values[3]);
    }
    if (nist_.parameters.empty()) fail("no starting values", "a row for each parameter");
  }

  void read_data(int64_t observations) {
    seek("Data:", "the line \"Data:\" with the names of the columns");
    for (const std::string_view word : words(after("Data:"))) {
      if (!is_name(word)) fail(fmt::format("column \"{}\"", word), "names of the columns");
      if (std::find(nist_.columns.begin(), nist_.columns.end(), word) != nist_.columns.end())
        fail(fmt::format("column {} twice", word), "each once");
      nist_.columns.emplace_back(word);
    }
    if (nist_.columns.empty()) fail("no columns", "their names after \"Data:\"");
    for (++at_; at_ < lines_.size(); ++at_) {
      const auto fields = words(lines_[at_]);
      if (fields.empty()) continue;
      if (fields.size() != nist_.columns.size())
        fail(fmt::format("{} numbers", fields.size()), fmt::format("{}", nist_.columns.size()));
      for (const std::string_view field : fields) {
        const auto value = number(field);
        if (!value) fail(fmt::format("\"{}\"", field), "a finite number");
        nist_.data.push_back(*value);
      }
    }
    if (nist_.observations() != observations)
      fail(fmt::format("{} observations", nist_.observations()),
           fmt::format("{}, as the header says", observations));
  }

  void check_names() {
    at_ = model_line_;
    const auto among = [](const std::vector<std::string>& all, const std::string& name) {
      return std::find(all.begin(), all.end(), name) != all.end();
    };
    const auto where = fmt::format("{}:{}", where_, model_line_ + 1);
    const Expression response = Expression::parse(nist_.response, where);
    for (const std::string& name : response.names())
      if (!among(nist_.columns, name)) fail(fmt::format("{} left of the model", name), "columns of the data");
    const Expression model = Expression::parse(nist_.model, where);
    for (const std::string& name : model.names())
      if (!among(nist_.columns, name) && !among(nist_.parameters, name))
        fail(fmt::format("{} in the model", name), "columns of the data and parameters");
    for (const std::string& name : nist_.parameters) {
      if (!among(model.names(), name)) fail(fmt::format("parameter {}", name), "it in the model");
      if (among(nist_.columns, name)) fail(fmt::format("parameter {}", name), "no column of that name");
    }
  }

  std::vector<std::string_view> lines_;
  std::string where_;
  size_t at_ = 0, model_line_ = 0;
  NistProblem nist_;
};

}  // namespace

NistProblem parse_nist(std::string_view text, const std::string& where) { return Reader(text, where).read(); }

NistProblem read_nist(const std::filesystem::path& file) {
  return io::parse_text_file(file, "a NIST .dat file", &parse_nist);
}

NistGraph build(const NistProblem& nist, int start) {
  return build(nist, start, std::vector<double>(nist.parameters.size(), 1));
}

NistGraph build(const NistProblem& nist, int start, const std::vector<double>& units) {
  if (start != 1 && start != 2) throw InputError(fmt::format("start {}", start), nist.name, "1 or 2");
  const Expression response = Expression::parse(nist.response, nist.name);
  const Expression model = Expression::parse(nist.model, nist.name);
  TermType type;
  type.name = nist.name;
  type.slots = {int(nist.parameters.size())};
  type.data = int(nist.columns.size());
  type.residual = [&](const TermArguments& a) {
    const auto leaf = [&](const std::string& name) {
      for (size_t k = 0; k < nist.parameters.size(); ++k)
        if (nist.parameters[k] == name) return a.x(0, int(k)) * units[k];
      for (size_t k = 0; k < nist.columns.size(); ++k)
        if (nist.columns[k] == name) return a.data(int(k));
      throw InputError(fmt::format("{} in the model", name), nist.name, "columns of the data and parameters");
    };
    return std::vector{response.build(a.graph(), leaf) - model.build(a.graph(), leaf)};
  };
  NistGraph out;
  const std::vector<int32_t> indices(size_t(nist.observations()), 0);
  std::vector<double> at = nist.starts[size_t(start - 1)];
  for (size_t k = 0; k < at.size(); ++k) at[k] /= units[k];
  out.parameters = out.problem.add_blocks("parameters", euclidean(type.slots[0]), at);
  out.problem.add_terms(type, {out.parameters}, indices, nist.data);
  return out;
}

Options nist_options(Method method) {
  Options options;
  options.method = method;
  options.linear = Linear::dense_qr;
  options.max_iterations = 10'000;
  options.function_tolerance = 0;
  options.gradient_tolerance = 0;
  options.parameter_tolerance = 1e-14;
  return options;
}

double log_relative_error(double got, double certified) {
  const double difference = std::abs(got - certified);
  if (!std::isfinite(difference)) return 0;
  const double error = certified == 0 ? difference : difference / std::abs(certified);
  if (error == 0) return kCertifiedDigits;
  return std::clamp(-std::log10(error), 0.0, kCertifiedDigits);
}

NistResult solve_nist(const NistProblem& nist, int start, Context& context, const Options& options) {
  // A start at which a parameter has next to no effect says nothing of its scale: there the identity damps better, of
  // parameters in units of the start over the length of the residuals there, which makes the damping a mere number.
  struct Attempt {
    Damping damping;
    double initial;
  };
  const std::vector<double> ones(nist.parameters.size(), 1);
  std::vector<double> relative = ones;
  for (size_t k = 0; k < relative.size(); ++k)
    if (const double value = nist.starts[size_t(start == 2)][k]; value != 0) relative[k] = std::abs(value);
  double length = 1;  // of the residuals at the start
  std::vector<Attempt> attempts{{options.damping, options.initial_damping}};
  if (options.method == Method::lm) {
    for (const double factor : {1e-2, 1e2, 1e4, 1e6})
      attempts.push_back({options.damping, factor * options.initial_damping});
    for (const double factor : {1.0, 1e4})
      attempts.push_back({Damping::identity, factor * options.initial_damping});
  }
  CheckpointFile file(options);
  NistResult out;
  for (const auto& [damping, initial] : attempts) {
    Options chosen = options;
    chosen.damping = damping;
    chosen.initial_damping = initial;
    const bool by_start = damping == Damping::identity && options.damping == Damping::diagonal;
    std::vector<double> units = by_start ? relative : ones;
    for (double& unit : units) unit /= by_start ? length : 1;
    NistGraph graph = build(nist, start, units);
    Summary summary = minimize_next(graph.problem, context, chosen, file);
    if (summary.initial_cost > 0) length = std::sqrt(2 * summary.initial_cost);
    const bool late = summary.termination == Termination::time_limit;
    const bool better = out.parameters.empty() || summary.final_cost < out.summary.final_cost;
    if (better) {
      const auto values = graph.problem.values(graph.parameters);
      out.parameters.assign(values.begin(), values.end());
      for (size_t k = 0; k < units.size(); ++k) out.parameters[k] *= units[k];
      out.summary = std::move(summary);
    }
    if (late) {
      out.summary.termination = Termination::time_limit;
      break;
    }
    if (options.callback && out.summary.termination == Termination::stopped) break;
  }
  out.lre = kCertifiedDigits;
  for (size_t k = 0; k < out.parameters.size(); ++k)
    out.lre = std::min(out.lre, log_relative_error(out.parameters[k], nist.certified[k]));
  out.residual_sum_of_squares = 2 * out.summary.final_cost;
  return out;
}

}  // namespace lockstep::solve
