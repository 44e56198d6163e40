// A run by its options and the content of its inputs. Two runs of equal identity give the same result.
//
//   Identity now("flow run");
//   now.option("nu", model.viscosity, true);
//   now.option("steps", steps, given, Effect::extent);
//   now.file("ic", path);
//   if (const auto lines = stored.differences(now); !lines.empty()) …
//
// A checkpoint stores to_json() and compares what it finds with the identity of the run that reads it. The hash of an
// identity names a result; options that only say how long a run continues, or where its files are, are no part of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "lockstep/array.hpp"
#include "lockstep/schema.hpp"

namespace lockstep::record {

struct Option {
  std::string name, value;  // numbers in the shortest text that reads back as the same number
  bool given = false;       // by the user, rather than a default
  Effect effect = Effect::result;
};

struct Input {
  std::string name, path;  // path: empty for data in memory; for people only, the content decides
  int64_t bytes = 0;
  std::string sha256;
};

class Identity {
 public:
  explicit Identity(std::string command = "") : command_(std::move(command)) {}

  template <class V>
  void option(std::string name, const V& value, bool given = false, Effect effect = Effect::result) {
    if constexpr (std::is_same_v<V, bool>)
      add({std::move(name), value ? "true" : "false", given, effect});
    else if constexpr (std::is_arithmetic_v<V>)
      add({std::move(name), number_text(value), given, effect});
    else
      add({std::move(name), std::string(value), given, effect});
  }
  /// Throws InputError where the file cannot be read.
  void file(std::string name, const std::filesystem::path& path);
  /// Element type, shape and values, regardless of the strides.
  void array(std::string name, const Array& array);
  void bytes(std::string name, std::span<const std::byte> bytes);

  const std::string& command() const { return command_; }
  const std::vector<Option>& options() const { return options_; }
  const std::vector<Input>& inputs() const { return inputs_; }

  /// One line for each thing that changes the result and differs: "nu = 1e-4, now 2e-4". Empty: the same run.
  std::vector<std::string> differences(const Identity& now) const;
  /// 16 hexadecimal digits of the command, the options that change the result, and the inputs' content.
  std::string hash() const;

  std::string to_json() const;
  /// Throws InputError for a document that to_json() did not write; `where` names its file.
  static Identity from_json(const nlohmann::json& document, const std::string& where);

 private:
  void add(Option option);
  void add(Input input);
  static std::string number_text(double value);
  static std::string number_text(int64_t value) { return std::to_string(value); }
  static std::string number_text(uint64_t value) { return std::to_string(value); }
  static std::string number_text(int value) { return std::to_string(value); }

  std::string command_;
  std::vector<Option> options_;
  std::vector<Input> inputs_;
};

/// Throws InputError for a checkpoint of another run, naming all that differs.
void require_same(const Identity& stored, const Identity& now, const std::string& where);

}  // namespace lockstep::record
