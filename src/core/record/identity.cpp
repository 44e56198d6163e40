#include "core/record/identity.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/record/sha256.hpp"
#include "lockstep/error.hpp"

namespace lockstep::record {
namespace {

using Json = nlohmann::ordered_json;
constexpr auto kExpected = "the record of a run";

Effect effect_of(const std::string& text, const std::string& where) {
  for (const Choice<Effect>& c : choices(Effect{}))
    if (c.name == text) return c.value;
  throw InputError("an unknown effect of an option", where, kExpected);
}

template <class T>
const T* find(const std::vector<T>& all, const std::string& name) {
  const auto at = std::find_if(all.begin(), all.end(), [&](const T& one) { return one.name == name; });
  return at == all.end() ? nullptr : &*at;
}

std::string source_of(const Input& input) {
  return fmt::format("{}{} bytes, sha256 {}", input.path.empty() ? "" : input.path + ", ", input.bytes,
                     input.sha256.substr(0, 12));
}

}  // namespace

std::string Identity::number_text(double value) { return fmt::format("{}", value); }

void Identity::add(Option option) {
  if (find(options_, option.name))
    throw InternalError("option " + option.name + " twice", "identity", "each option once");
  options_.push_back(std::move(option));
}
void Identity::add(Input input) {
  if (find(inputs_, input.name))
    throw InternalError("input " + input.name + " twice", "identity", "each input once");
  inputs_.push_back(std::move(input));
}

void Identity::file(std::string name, const std::filesystem::path& path) {
  const std::string hash = sha256_of_file(path);  // says what cannot be read
  add(Input{std::move(name), path.string(), static_cast<int64_t>(std::filesystem::file_size(path)), hash});
}

void Identity::array(std::string name, const Array& array) {
  const Array packed = array.packed();
  Sha256 hash;
  hash.update(fmt::format("{} {}\n", lockstep::name(packed.storage()), to_string(packed.shape())));
  if (!packed.empty()) hash.update(std::span(packed.data(), static_cast<size_t>(packed.bytes())));
  add(Input{std::move(name), "", packed.empty() ? 0 : static_cast<int64_t>(packed.bytes()), hash.finish()});
}

void Identity::bytes(std::string name, std::span<const std::byte> bytes) {
  add(Input{std::move(name), "", static_cast<int64_t>(bytes.size()), sha256(bytes)});
}

std::vector<std::string> Identity::differences(const Identity& now) const {
  std::vector<std::string> lines;
  const auto line = [&](const std::string& name, const std::string& before, const std::string& after) {
    lines.push_back(fmt::format("{} = {}, now {}", name, before, after));
  };
  if (command_ != now.command_) line("command", command_, now.command_);
  for (const Option& o : options_) {
    if (o.effect != Effect::result) continue;
    const Option* other = find(now.options_, o.name);
    if (!other || other->value != o.value) line(o.name, o.value, other ? other->value : "absent");
  }
  for (const Option& o : now.options_)
    if (o.effect == Effect::result && !find(options_, o.name)) line(o.name, "absent", o.value);
  for (const Input& i : inputs_) {
    const Input* other = find(now.inputs_, i.name);
    if (!other || other->sha256 != i.sha256) line(i.name, source_of(i), other ? source_of(*other) : "absent");
  }
  for (const Input& i : now.inputs_)
    if (!find(inputs_, i.name)) line(i.name, "absent", source_of(i));
  return lines;
}

std::string Identity::hash() const {
  Json what = {{"command", command_}, {"options", Json::object()}, {"inputs", Json::object()}};
  std::vector<Option> options = options_;
  std::vector<Input> inputs = inputs_;
  const auto by_name = [](const auto& a, const auto& b) { return a.name < b.name; };
  std::sort(options.begin(), options.end(), by_name);
  std::sort(inputs.begin(), inputs.end(), by_name);
  for (const Option& o : options)
    if (o.effect == Effect::result) what["options"][o.name] = o.value;
  for (const Input& i : inputs) what["inputs"][i.name] = i.sha256;
  return sha256(what.dump(-1, ' ', false, Json::error_handler_t::replace)).substr(0, 16);
}

std::string Identity::to_json() const {
  Json j = {{"command", command_}, {"options", Json::array()}, {"inputs", Json::array()}};
  for (const Option& o : options_)
    j["options"].push_back(
        {{"name", o.name}, {"value", o.value}, {"given", o.given}, {"effect", lockstep::name(o.effect)}});
  for (const Input& i : inputs_)
    j["inputs"].push_back({{"name", i.name}, {"path", i.path}, {"bytes", i.bytes}, {"sha256", i.sha256}});
  j["hash"] = hash();
  return j.dump(1, ' ', false, Json::error_handler_t::replace);
}

Identity Identity::from_json(const nlohmann::json& j, const std::string& where) {
  try {
    Identity identity(j.at("command").get<std::string>());
    for (const auto& o : j.at("options")) {
      const Effect effect = effect_of(o.at("effect").get<std::string>(), where);
      identity.options_.push_back({o.at("name"), o.at("value"), o.at("given").get<bool>(), effect});
    }
    for (const auto& i : j.at("inputs"))
      identity.inputs_.push_back({i.at("name"), i.at("path"), i.at("bytes").get<int64_t>(), i.at("sha256")});
    if (j.at("hash") != identity.hash())
      throw InputError("a record whose hash is not that of its content", where,
                       "a record that was not edited");
    return identity;
  } catch (const nlohmann::json::exception& error) { throw InputError(error.what(), where, kExpected); }
}

void require_same(const Identity& stored, const Identity& now, const std::string& where) {
  const std::vector<std::string> lines = stored.differences(now);
  if (lines.empty()) return;
  throw InputError(fmt::format("a checkpoint of other settings: {}", fmt::join(lines, "; ")), where,
                   "a checkpoint of the same options and inputs")
      .with_hint("give another --checkpoint, or remove the file to start again");
}

}  // namespace lockstep::record
